"""A day of an IOTA network: its steps, tables, laws, stores and inputs, declared once."""

from __future__ import annotations

from permalake.config import Settings
from permalake.contracts.steps import Step
from permalake.errors import ConfigError
from permalake.iota.contracts import IOTA_TABLES, activity, carried, metrics, running_views
from permalake.iota.contracts.figures import CHARTS, FIGURES
from permalake.iota.contracts.unreferenced import HEAD_TABLES
from permalake.iota.contracts.views import CALENDARS, VIEWS
from permalake.iota.laws import laws
from permalake.iota.permanode.store import CassandraStore
from permalake.iota.sources.inputs import iota_inputs
from permalake.pipeline.closing_steps import closing_steps
from permalake.pipeline.domain import Domain

_BASE = (
    *("milestones", "messages", "parents", "tags", "transactions"),
    *("basic_outputs", "alias_outputs", "foundry_outputs", "nft_outputs"),
    *(
        "legacy_outputs",
        "treasury_outputs",
        "receipts",
        "protocol_parameters",
        "consumed_outputs",
        "native_tokens",
    ),
    *("ledger_updates", "address_analytics", "conflicting_transactions", "ms_analytics", "ms_activity"),
)
_ANALYTICS = tuple(name for name, table in IOTA_TABLES.items() if table.commit == "day" and name not in _BASE)
_ANALYTICS_TABLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("ms_analytics", "daily_analytics", "daily_extended", "date_cache", "metrics_cache"), ()),
    "address_analytics": ("address",),
    "ledger_updates": ("address",),
    "conflicting_transactions": ("address",),
    "native_tokens": ("token_id",),
    **{
        table.name: ()
        for table in (*metrics.TABLES, *activity.TABLES, *carried.TABLES)
        if table is not carried.ADDRESS_BALANCES
    },
    "chronicle_measurements": (),
    **dict.fromkeys((view.name for view in (*running_views.VIEWS, *CALENDARS)), ()),
}
_STEPS = (
    Step(
        "ingest_decode",
        phases=("ingest", "decode"),
        run="permalake.iota.steps.ingest:run",
        job="iota_ingest",
        doc="Reads the milestones and what they reference, verifies and decodes them, and stages the tables "
        "that follow from milestones alone. A broken cone refuses its day with milestone and reason; bad "
        "input is quarantined.",
        writes=_BASE,
    ),
    Step(
        "analytics",
        phases=("analytics",),
        run="permalake.iota.steps.analytics:run",
        job="iota_analytics",
        doc="Computes the figures of whole days: by hour, address and tag, and what the days changed in the "
        "ledger.",
        needs_landing=True,
        writes=_ANALYTICS,
    ),
    *closing_steps("Cassandra", tuple(table.name for table in carried.TABLES)),
)


def _networks(settings: Settings) -> tuple[str, ...]:
    return tuple(settings.networks)


def _choose(settings: Settings, network: str | None) -> str:
    if network is not None:
        settings.network(network)
        return network
    if not settings.networks:
        raise ConfigError("no IOTA network is configured; add a [networks.NAME] section to permalake.toml")
    scheduled = [name for name, section in settings.networks.items() if section.scheduled]
    candidates = scheduled or list(settings.networks)
    if len(candidates) > 1:
        names = ", ".join(candidates)
        raise ConfigError(f"several IOTA networks are configured; choose with --network: {names}")
    return candidates[0]


IOTA = Domain(
    name="iota",
    steps=_STEPS,
    tables=IOTA_TABLES,
    head_tables=HEAD_TABLES,
    views=VIEWS,
    laws=laws,
    carry="permalake.iota.steps.carry:stage",
    raw_tables=("milestones", "messages"),
    evidence="permalake.iota.evidence:evidence",
    derivation="permalake.iota.derivation:derivation",
    stores=(CassandraStore(),),
    networks=_networks,
    choose=_choose,
    inputs=iota_inputs,
    figures=FIGURES,
    charts=CHARTS,
    item_table="messages",
    item_name="blocks",
    explorer="explore",
    finds="permalake.iota.rest.explorer_pages:finds",
    coin="permalake.iota.rest.known_networks:coin",
    routes="permalake.iota.rest.mounts:mounts",
    live="permalake.iota.steps.live:follow",
    check_live="permalake.iota.sources.inputs:check_live",
    analytics=_ANALYTICS_TABLES,
    route_groups={
        "permanode": "What a permanode has beside a node: published ranges, their activity, all messages "
        "of a milestone, all outputs of an address.",
        "core v2": "The core API of Stardust nodes (TIP-25): blocks, outputs, milestones, receipts.",
        "core v1": "The core API of Chrysalis nodes (TIP-13): outputs, milestones, receipts.",
        "messages": "Messages and blocks in the dialect of Chrysalis nodes and of Chronicle.",
        "addresses": "Balances, outputs and history of Chrysalis addresses (TIP-13).",
        "indexer": "Ids of outputs by owner and condition (TIP-26).",
        "explorer": "Chronicle's explorer API: balances, children, ledger updates, richest addresses.",
        "proof of inclusion": "Proofs that a milestone references a block: made, and checked (inx-poi).",
        "not served": "Routes of nodes that finished days cannot answer: 501, with the reason.",
    },
)
