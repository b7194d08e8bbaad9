"""A synthetic Wormhole world, made on Spark: documents of VAAs, reference data, prices."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from permalake.errors import ConfigError
from permalake_simulate.seeds import digest, opened
from permalake_simulate.wormhole.application_messages import contracts
from permalake_simulate.wormhole.bridge_world import (
    NFT_BRIDGE,
    TOKEN_BRIDGE,
    Part,
    SyntheticToken,
    WormholeWorld,
)
from permalake_simulate.wormhole.messages import PartMaker
from permalake_simulate.wormhole.tally import Tally

WORLD = "world.json"
NETWORK = "wormhole.toml"
_INPUT = pa.schema([("part", pa.int32()), ("what", pa.string())])
_DONE = pa.schema([("day", pa.string()), ("tally", pa.string())])
_HOUR = 3_600
Maker = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def simulate(
    spark: SparkSession | None, world: WormholeWorld, folder: Path, *, packed: bool = True
) -> dict[date, Tally]:
    """Write VAAs, operations and observations by day, reference data and prices; return the days' totals.

    ``folder`` must be empty or absent. Without ``spark`` this process makes everything, the same bytes.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder}: not empty; choose another --out, or remove it")
    folder = folder.resolve()
    rows = [
        {"part": part.number, "what": json.dumps(asdict(part) | {"day": part.day.isoformat()})}
        for part in world.parts()
    ]
    totals: dict[date, Tally] = {}
    for row in _made(spark, pa.Table.from_pylist(rows, schema=_INPUT), _maker(world, folder, packed)):
        totals.setdefault(date.fromisoformat(row["day"]), Tally()).add(Tally(**json.loads(row["tally"])))
    totals = dict(sorted(totals.items()))
    _write_reference(world, folder / "reference")
    _write_prices(world, folder / "price_history.csv")
    _describe(world, folder, totals)
    return totals


def _made(spark: SparkSession | None, parts: pa.Table, make: Maker) -> Iterator[Any]:
    if spark is None:
        return (row for batch in make(parts.to_batches()) for row in batch.to_pylist())
    frame = spark.createDataFrame(parts).repartitionById(parts.num_rows, "part")
    return iter(frame.mapInArrow(make, "day string, tally string").collect())


def _maker(world: WormholeWorld, folder: Path, packed: bool) -> Maker:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column("what").to_pylist():
                told: dict[str, Any] = json.loads(text)
                part = Part(**told | {"day": date.fromisoformat(told["day"])})
                maker = PartMaker(world, part)
                file = folder / "vaas" / part.day.isoformat() / f"vaas-{part.number:06d}.jsonl"
                with opened(file, packed) as lines:
                    lines.writelines(maker.documents())
                for kind, made in (("operations", maker.operations), ("observations", maker.observations)):
                    name = f"{kind}-{part.number:06d}.jsonl"
                    with opened(folder / kind / part.day.isoformat() / name, packed) as lines:
                        lines.writelines(made)
                tally = json.dumps(asdict(maker.tally))
                yield pa.RecordBatch.from_pydict({"day": [part.day.isoformat()], "tally": [tally]}, _DONE)

    return run


def _write_reference(world: WormholeWorld, folder: Path) -> None:
    folder.mkdir(parents=True)
    sets = [
        {
            "index": number,
            "guardians": [
                {"pubkey": "0x" + address.hex(), "name": f"synthetic {number}/{at}"}
                for at, address in enumerate(addresses)
            ],
        }
        for number, addresses in world.guardian_sets.items()
    ]
    bridges = {
        name: [
            {"chain": emitter.chain, "emitter": emitter.address.hex()}
            for emitter in world.emitters
            if emitter.kind == kind
        ]
        for name, kind in (("tokenbridge_emitters", TOKEN_BRIDGE), ("nftbridge_emitters", NFT_BRIDGE))
    }
    denied = [
        {"chain": token.chain, "token_address": token.address.hex()}
        for token in _tokens(world)
        if token.denied
    ]
    files = {"guardian_sets": sets, "bridges": bridges, "deny": denied, "applications": contracts(world)}
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    with (folder / "token_list.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(
            ("chain", "token_address", "symbol", "name", "coingecko_id", "decimals", "native_address")
        )
        for token in _tokens(world):
            if token.listed:
                row = (token.chain, token.address.hex(), token.symbol, token.name, _coin(token))
                table.writerow((*row, token.decimals, ""))


def _write_prices(world: WormholeWorld, file: Path) -> None:
    """Write hourly quotes that swing around a token's price, from half a day before to half a day after."""
    begin = world.midnight(world.start) - 12 * _HOUR
    with file.open("w", newline="", encoding="utf-8") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(
            ("quoted_at", "chain", "token_address", "symbol", "coingecko_id", "decimals", "price_usd")
        )
        for hour in range(24 * (world.days + 1)):
            for token in _tokens(world):
                if token.price:
                    table.writerow(_quote(world, token, begin + hour * _HOUR))


def _quote(world: WormholeWorld, token: SyntheticToken, time: int) -> tuple[object, ...]:
    chance = digest(world.seed, "price", token.chain, token.address.hex(), time)
    noise = int.from_bytes(chance[:2], "big") / 65_536 - 0.5
    price = token.price * (1 + 0.1 * math.sin(time / 400_000) + 0.02 * noise)
    at = datetime.fromtimestamp(time + chance[2] * 7, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        at,
        token.chain,
        token.address.hex(),
        token.symbol,
        _coin(token),
        token.decimals,
        f"{price:.8f}",
    )


def _coin(token: SyntheticToken) -> str:
    return f"synthetic-{token.chain}-{token.symbol.lower()}"


def _tokens(world: WormholeWorld) -> list[SyntheticToken]:
    return [token for tokens in world.tokens.values() for token in tokens]


def wormhole_snippet(world: WormholeWorld) -> str:
    """Return the sections of permalake.toml that read the world, with paths from the file's own folder."""
    return (
        f"# A synthetic Wormhole world: made by `permalake simulate wormhole`, seed {world.seed}.\n"
        '[wormhole]\nsource = "files"\npath = "vaas"\noperations = "operations"\n'
        'observations = "observations"\nreference = "reference"\n'
        '[prices]\nprovider = "file"\npath = "price_history.csv"\n'
    )


def _describe(world: WormholeWorld, folder: Path, totals: dict[date, Tally]) -> None:
    described = asdict(world) | {
        "synthetic": True,
        "start": world.start.isoformat(),
        "totals": {day.isoformat(): asdict(tally) for day, tally in totals.items()},
    }
    (folder / WORLD).write_text(json.dumps(described, indent=1) + "\n", "utf-8")
    (folder / NETWORK).write_text(wormhole_snippet(world), "utf-8")
    (folder / "README.md").write_text(_README.format(world=world), "utf-8")


_README = """# Synthetic data: VAAs that no guardian signed

Made by `permalake simulate wormhole` with seed {world.seed}: {world.messages:,} messages of made-up contracts
on real chain ids, signed by made-up guardians (sets 1000 and 1001, whose keys follow from the seed). Tokens,
prices and transaction hashes are made up too. Nothing here happened on any network.

- `vaas/`: documents by UTC day, bad ones of every kind among them
- `operations/`: what an explorer would say of the transfers' redemptions, made up too
- `observations/`: when guardians were observed to sign a share of the messages
- `reference/`, `price_history.csv`: guardian sets, bridges, applications, tokens and prices of this world
- `wormhole.toml`: the sections of permalake.toml that read it
- `world.json`: parameters, and what the days must add up to
"""
