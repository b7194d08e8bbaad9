"""``make demo``: the bundled days, real and synthetic, through Airflow, and what came out."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import date

from permalake.config import Settings, load_settings
from permalake.contracts.rows import Row
from permalake.domains import domain_of, open_reader, table_of
from permalake.errors import PermalakeError
from permalake.lake import DayStatus, Reader
from permalake.lake.identity import open_database
from permalake.local import config_of_make
from permalake.local.dag_runs import run_dags
from permalake.local.report import RunReport
from permalake.local.run import LOGS, has_nothing_to_do, request_of, title
from permalake.paths import HOME
from permalake.paths import SAMPLE as BUNDLED
from permalake.pipeline.workspace import Workspace
from permalake.transparency.keys import create_key, signing_key
from permalake.transparency.report import report
from permalake.transparency.signing import signed_lake
from permalake.transparency.verify import Checked, verify
from permalake.web.synthetic import spans_of

SAMPLE = (
    ("shimmer", date(2022, 9, 28), date(2022, 9, 28)),
    # Three weeks that never were: all days of a network of their own.
    ("synthetic", date(2100, 1, 1), date(2100, 1, 21)),
    # Governance VAAs without a time of their own lie on 1970-01-01; the last of the 43 real days is in 2026.
    ("wormhole", date(1970, 1, 1), date(2100, 1, 2)),
)
DEMO_LOG = "permalake.local/demo"
"""Name of the log that the demo signs, where there is no key yet."""
SYNTHETIC = (date(2100, 1, 1), date(2100, 1, 2))
"""Days of Wormhole that hold made-up messages (``docs/adr/0017-synthetic-days-in-the-demo.md``)."""


def bundled(settings: Settings) -> list[tuple[str, date, date]]:
    """Return what a configuration takes from the bundled sample: networks with their first and last day."""
    paths = {name: section.path for name, section in settings.networks.items()}
    if settings.wormhole:
        paths["wormhole"] = settings.wormhole.path
    return [span for span in SAMPLE if (path := paths.get(span[0])) and path.is_relative_to(BUNDLED)]


def demo(settings: Settings) -> None:
    """Build the sample through Airflow, as far as it is configured.

    Days that are published and unchanged are left alone.
    """
    chosen = bundled(settings)
    if chosen and signing_key() is None:
        create_key(DEMO_LOG)
    runs = []
    for network, start, end in chosen:
        work = Workspace.open(settings, domain_of(network), network)
        request = request_of(work, start, end)
        if has_nothing_to_do(work, request):
            RunReport(title(request)).say("published and unchanged")
        else:
            runs.append((work, request))
    if runs:
        run_dags(runs, config_of_make())


def summary(settings: Settings) -> str:
    """Return what the lake holds of the sample, and where to look next."""
    reader = open_reader(settings)
    lines = []
    for network, _, _ in bundled(settings):
        days = reader.status(network)
        lines += ["", *_network(network, days), *_quarantined(reader, network, days)]
        if network == "synthetic" and days:
            lines.append("  SYNTHETIC: nothing of this network happened; its days show what weeks look like")
        if network == "wormhole" and any(day.published and day.date in SYNTHETIC for day in days):
            lines += _values(reader)
    return "\n".join([*lines, "", *_next(settings), "", *_checked(settings), ""])


def _verified(settings: Settings) -> Checked:
    copy, key = signed_lake(settings, open_database(settings), domain_of)
    return verify(copy, table_of, key=key)


def _checked(settings: Settings) -> list[str]:
    """Say what a check of the lake against its signed manifests has shown."""
    return [
        "Checked, as by .venv/bin/permalake verify:",
        *(f"  {line}" for line in report(_verified(settings))),
    ]


def _network(network: str, days: list[DayStatus]) -> list[str]:
    published = [day for day in days if day.published]
    rows: Counter[str] = Counter()
    for day in published:
        rows.update(day.rows)
    filled = {table: count for table, count in rows.items() if count}
    width = max(map(len, filled), default=0)
    title = (
        f"{network}: {_count(len(published), 'day')} published{_span(published)}, {sum(rows.values())} rows"
    )
    return [title, *(f"  {table:<{width}}  {count:>7}" for table, count in filled.items())]


def _span(published: list[DayStatus]) -> str:
    """Return the range of the real days, and that of the made-up ones, in brackets; one day needs none."""
    if len(published) < 2:
        return ""
    spans = spans_of(day.date for day in published)
    ends = (
        (spans["real_first"], spans["real_last"], ""),
        (spans["synthetic_first"], spans["synthetic_last"], "synthetic "),
    )
    ranges = [f"{word}{first}..{last}" for first, last, word in ends if first]
    return f" ({'; '.join([*ranges, *(['messages without a time'] if spans['untimed'] else [])])})"


def _quarantined(reader: Reader, network: str, days: list[DayStatus]) -> list[str]:
    total = sum(day.quarantined for day in days)
    if not total:
        return ["  quarantined: nothing"]
    # The network is one of SAMPLE's own names.
    sql = f'select reason, count(*) as n from "{network}".quarantine group by 1 order by 2 desc, 1'  # noqa: S608
    reasons = ", ".join(f"{row['n']} {row['reason']}" for row in reader.query(sql).to_pylist())
    return [f"  quarantined: {reasons}"]


def _values(reader: Reader) -> list[str]:
    """Say what the transfers of real and of synthetic days were worth, and which days are made up."""
    first, last = SYNTHETIC
    sql = (
        "select count(*) as transfers, count(notional_usd) as valued, sum(notional_usd) as usd, "  # noqa: S608
        "count(sender_address) as senders, count(done.row_key) as redeemed "
        "from wormhole.token_transfer_details as details "
        "join wormhole.chain_details using (row_key) "
        "left join (select distinct row_key from wormhole.redemptions where status = 'completed') as done "
        f"using (row_key) group by details.date < '{first}' order by min(details.date)"
    )
    real, synthetic = reader.query(sql).to_pylist()
    return [
        f"  transfers of real days: {_worth(real)}",
        f"  senders known of {real['senders']}, redemptions of {real['redeemed']}",
        f"  SYNTHETIC: {first} and {last}, with guardians, bridges, tokens and prices that are made up:",
        f"  {_worth(synthetic)}",
    ]


def _worth(row: Row) -> str:
    if not row["valued"]:
        return f"{row['transfers']}, none has a price"
    return f"{row['valued']} of {row['transfers']} have a price; these moved {row['usd']:,.2f} USD"


def _next(settings: Settings) -> list[str]:
    return [
        "Where to look next",
        '  .venv/bin/permalake query "select * from shimmer.ms_analytics order by milestone_index"',
        '  .venv/bin/permalake query "select * from synthetic.daily_analytics order by date"   (made up)',
        '  .venv/bin/permalake query "select * from wormhole.notional_transferred_daily order by date"',
        '  .venv/bin/permalake query "select * from wormhole.tvl_totals order by all"   (dollars: synthetic)',
        "  .venv/bin/permalake status            per network and day: built, audited, published, rows",
        "  .venv/bin/permalake quarantine list   what was refused, and why",
        "  .venv/bin/permalake tables            what every table and column means",
        f"  {settings.lake.warehouse}   the lake",
        f"  {HOME / 'audit' / 'index.html'}   audit results of every day (Data Docs)",
        f"  {LOGS}   the logs of the runs",
        "  make up                               the Airflow UI with both DAGs, and the REST API",
        "Serve it: .venv/bin/permalake serve, then open or ask",
        "  http://localhost:8042                 the pages; Flows in USD is what moved between chains",
        "  curl http://localhost:8042/shimmer/api/core/v2/milestones/by-index/17339",
        "  curl 'http://localhost:8042/api/wormhole/v1/totals?pageSize=3'",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    try:
        configured = load_settings(config_of_make())
        is_quiet = "--quiet" in sys.argv
        if not (is_quiet or bundled(configured)):
            raise PermalakeError(
                f"{config_of_make()}: names no folder of the bundled sample ({BUNDLED}); "
                "permalake run builds other days"
            )
        demo(configured)
        if not is_quiet:
            sys.stdout.write(summary(configured))
    except PermalakeError as error:
        sys.exit(f"permalake: {error}")
