"""Step ``carry`` of Wormhole: published days → attested tokens and locked value at the days' ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from permalake.engine.rows import Relation
from permalake.lake import CarryAttempt
from permalake.pipeline.carried_queries import stage_carried
from permalake.pipeline.day_landing import DayLanding
from permalake.pipeline.day_queries import DayQueries
from permalake.pipeline.jobs import StepContext
from permalake.pipeline.mirrored_days import landed_days
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.custody_tables import TOKEN_CUSTODY
from permalake.wormhole.enrich import price_providers
from permalake.wormhole.enrich.custody import Custody
from permalake.wormhole.enrich.rpcs import opened
from permalake.wormhole.enrich.token_values import priceable, reference_tokens
from permalake.wormhole.reference import load_reference
from permalake.wormhole.steps.answer_caches import answer_cache
from permalake.wormhole.steps.copied import copied_values
from permalake.wormhole.steps.quotes import asking, price_cache, store_used
from permalake.wormhole.tables import amount_queries
from permalake.wormhole.tables import tvl_daily as tvl
from permalake.wormhole.tables.attested_tokens import ATTESTED_TOKENS, STATE
from permalake.wormhole.tables.nearest_quotes import COUNTING, NEAREST, PRICED, WANT, WANTS
from permalake.wormhole.tables.used_attestations import ATTESTED, BEFORE, OUTDATED, OUTDATED_DAY

_CUSTODY_SECONDS = 600.0
"""How long custody may hold up the publication of the carried tables; the newest day may take longer."""


def stage(context: StepContext, attempt: CarryAttempt) -> Mapping[date, str]:
    """Stage the carried tables; return days that used an attestation that has changed.

    Quotes at the days' ends that ``token_prices`` lacks are asked for, and kept there.
    """
    settings = context.work.settings
    functions = amount_queries.functions(settings.wormhole.reference if settings.wormhole else None)
    days = DayLanding(
        context.spark,
        attempt.landing,
        lambda name: attempt.staged.published_rows(name, attempt.start, attempt.end).scan(),
    )
    landed = days.queries(
        DayQueries(
            {
                ATTESTED: ATTESTED_TOKENS,
                tvl.FLOWS: tvl.FLOWS_QUERY,
                tvl.DATES: tvl.DATES_QUERY,
                tvl.HELD: tvl.BALANCES,
            },
            WORMHOLE_TABLES,
            {STATE: _before(attempt, "attested_tokens"), tvl.STATE: _before(attempt, "tvl_daily")},
            functions,
        ),
        {ATTESTED: WORMHOLE_TABLES["attested_tokens"].arrow, tvl.HELD: tvl.BALANCE},
    )
    attested, held = landed.dataset(ATTESTED), landed.dataset(tvl.HELD)
    if (copied := landed_days(context)) is not None:
        values = tvl.AS_SIGNED
        quotes: Mapping[str, Relation] = {
            tvl.SIGNED: copied_values(context, copied, attempt.start, attempt.end)
        }
    else:
        priced = _priced(context, attempt, days, held)
        store_used(context, attempt, days, [priced], context.report)
        counting = {tvl.QUOTED: f"SELECT * FROM {PRICED} WHERE {COUNTING}"}
        values = tvl.TVL_DAILY
        quotes = days.results(counting, {tvl.QUOTED: NEAREST}, {PRICED: priced})
    made = {"attested_tokens": f"SELECT * FROM {ATTESTED}", "tvl_daily": values}
    stage_carried(
        attempt,
        {ATTESTED: attested, tvl.HELD: held, **quotes},
        lambda _: made,
        {name: WORMHOLE_TABLES[name] for name in made},
        lambda: context.spark,
        functions=functions,
    )
    _ask_custody(context, attempt, days, held)
    then = attempt.staged.published_rows("attested_tokens", attempt.start, attempt.end).scan()
    outdated = days.queries(
        DayQueries({"outdated": OUTDATED}, WORMHOLE_TABLES, {ATTESTED: attested, BEFORE: then}, functions),
        {"outdated": OUTDATED_DAY},
    )
    return {
        row["date"]: f"the attestation of token {row['token']} has changed"
        for row in outdated.dataset("outdated").to_table().to_pylist()  # a row a day
    }


def _before(attempt: CarryAttempt, name: str) -> Relation:
    """Return the published rows of a carried table of the latest day before the attempt's."""
    latest = attempt.staged.latest_before(name)
    if latest is None:
        return WORMHOLE_TABLES[name].arrow.empty_table()
    return attempt.staged.published_rows(name, latest, latest).scan()


def _ask_custody(context: StepContext, attempt: CarryAttempt, days: DayLanding, held: Relation) -> None:
    """Store what the bridges held of these tokens; what takes too long waits for ``--only enrich``."""
    if context.arguments.stored:
        context.report("custody: no chain is asked (--stored)")
        return
    cache = answer_cache(context.spark, attempt, TOKEN_CUSTODY, lambda text, _: context.report(text))
    with opened(context.work.settings) as nodes:
        Custody(nodes, cache, seconds=_CUSTODY_SECONDS).ask(days, held, (attempt.start, attempt.end))


def _priced(context: StepContext, attempt: CarryAttempt, days: DayLanding, held: Relation) -> Relation:
    """Return the quote nearest to each day's end of the tokens held then."""
    settings = context.work.settings
    cache = price_cache(context, attempt, context.report)
    reference = load_reference(settings.wormhole.reference if settings.wormhole else None)
    given = {tvl.HELD: held, **reference_tokens(reference)}
    wants = days.results({WANTS: priceable(tvl.HELD)}, {WANTS: WANT}, given)[WANTS]
    providers = price_providers.providers(settings, cache, asking(context, again=False))
    return price_providers.priced(days, providers, wants, settings.prices)
