"""What whole histories cost, from the rates of ``bench/results.json``: ``python -m bench.scale``.

Options replace the assumptions; ``--write`` puts the tables into ``docs/scale.md``. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from permalake.wormhole.enrich.providers.coingecko import DAYS_AT_ONCE

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "scale.md"
_MARK = "<!-- python -m bench.scale --write -->"
_HOUR, _GB = 3600, 1e9
# Messages of the benchmark of Cassandra: 44 days of 2,000.
_SERVED = 88_000


@dataclass(frozen=True)
class Assumptions:
    """What is assumed, not measured: sizes of the histories and of what builds them."""

    messages: float = 768e6
    days: int = 889
    vaas: float = 1e9
    vaa_days: int = 1900
    signatures: int = 13
    tokens: int = 2000
    machines: int = 4
    cores: int = 8


def rates(results: dict) -> dict[str, float]:
    """Return what one core does in a second, and bytes and rows by message."""
    day = _figure(results, "iota_build", "IOTA day of 1,000,000 messages, built")
    size = _figure(results, "api_cost", "a day of 1,000,000 messages: bytes")
    rows = _figure(results, "cassandra", f"Chrysalis tangle of {_SERVED:,} messages")
    events = _figure(results, "bigtable", "events into Bigtable")
    # A store's server and the job that fills it share the machine.
    of_cassandra, of_bigtable = (results[store]["machine"]["cores"] for store in ("cassandra", "bigtable"))
    return {
        "messages": 1e6 / day["cpu_seconds"],
        "bytes": (size["table_bytes"] + size["index_bytes"] + size["other_bytes"]) / 1e6,
        "rows": rows["rows"] / _SERVED,
        "stored": rows["ours"] / of_cassandra,
        "events": events["ours"] / of_bigtable,
        "signatures": _figure(results, "wormhole_verify", "guardian signatures")["ours"],
        "decoded": _figure(results, "wormhole_decode", "VAAs decoded")["ours"],
    }


def tables(results: dict, given: Assumptions) -> str:
    """Return the tables of both histories as Markdown."""
    return "\n".join([*_iota(rates(results), given), "", *_wormhole(rates(results), given)])


def _iota(rate: dict[str, float], given: Assumptions) -> Iterator[str]:
    rows = given.messages * rate["rows"]
    yield f"| Chrysalis mainnet: {given.messages:,.0f} messages, {given.days} days | rate | total |"
    yield "| --- | ---: | ---: |"
    yield _work("days built and published", given.messages, rate["messages"], "messages", given)
    size = given.messages * rate["bytes"] / _GB
    yield f"| bytes in the lake | {rate['bytes']:,.0f} per message | {size:,.0f} GB |"
    yield f"| rows in Cassandra, with views | {rate['rows']:.1f} per message | {rows:,.0f} |"
    yield _work("rows written into Cassandra", rows, rate["stored"], "rows", given)


def _wormhole(rate: dict[str, float], given: Assumptions) -> Iterator[str]:
    requests = given.tokens * -(-given.vaa_days // DAYS_AT_ONCE)
    yield f"| Wormhole: {given.vaas:,.0f} VAAs, {given.vaa_days} days | rate | total |"
    yield "| --- | ---: | ---: |"
    signatures = given.vaas * given.signatures
    yield _work("signatures verified", signatures, rate["signatures"], "signatures", given)
    yield _work("VAAs decoded", given.vaas, rate["decoded"], "VAAs", given)
    yield _work("events written into Bigtable", given.vaas, rate["events"], "events", given)
    yield f"| quotes from CoinGecko | {DAYS_AT_ONCE} days per request and token | {requests:,} requests |"
    yield f"| details from chains | 1 per token | {given.tokens:,} requests |"
    custody = given.tokens * given.vaa_days
    yield f"| custody from archive nodes | at most 1 per token and day | {custody:,} requests |"


def _work(name: str, amount: float, rate: float, unit: str, given: Assumptions) -> str:
    hours = amount / rate / _HOUR
    wall = hours / (given.machines * given.cores)
    return (
        f"| {name} | {rate:,.0f} {unit}/s on a core | {hours:,.0f} core-hours; "
        f"{wall:,.1f} h on {given.machines} machines of {given.cores} cores |"
    )


def _figure(results: dict, bench: str, part: str) -> dict:
    return next(one for one in results[bench]["figures"] if part in one["name"])


def page(results: dict) -> str:
    """Return ``docs/scale.md`` with the tables of the default assumptions."""
    before, _, after = PAGE.read_text("utf-8").split(_MARK)  # the tables stand between two marks
    return f"{before}{_MARK}\n\n{tables(results, Assumptions())}\n\n{_MARK}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.scale", description=__doc__.splitlines()[0])
    for one in fields(Assumptions):
        parser.add_argument(f"--{one.name.replace('_', '-')}", type=type(one.default), default=one.default)
    parser.add_argument("--write", action="store_true", help="write the default tables into docs/scale.md")
    parser.add_argument("--check", action="store_true", help="fail if docs/scale.md has other tables")
    given = vars(parser.parse_args())
    results = json.loads((HERE / "results.json").read_text("utf-8"))
    write, check = given.pop("write"), given.pop("check")
    if write:
        PAGE.write_text(page(results), "utf-8")
    elif check:
        if page(results) != PAGE.read_text("utf-8"):
            sys.exit(
                "docs/scale.md does not follow from bench/results.json; run python -m bench.scale --write"
            )
    else:
        print(tables(results, Assumptions(**given)))


if __name__ == "__main__":
    main()
