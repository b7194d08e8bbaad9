"""``/api/proofs/v1``: what to send to somebody who shall check a day, a message or a VAA for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from threading import BoundedSemaphore
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.config import Settings
from permalake.contracts import Table
from permalake.contracts.rows import Row
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.lake.published import dataset
from permalake.transparency.copies import LakeCopy, as_signed
from permalake.transparency.digest import PlacedRow, placed_row
from permalake.transparency.log import Entry
from permalake.transparency.places import FolderPlace
from permalake.transparency.proofs import day_proof, row_proof
from permalake.transparency.served import ServedLog, served_log
from permalake.transparency.signing import FOLDER
from permalake.web.answers import Base64, Bytes32, Count, answer
from permalake.web.paging import Nothing
from permalake.web.parameter_types import IsoDate
from permalake.web.problems import ProblemError, bad_request, documented, not_found, not_served
from permalake.web.published import published_state
from permalake.web.responses import current_json
from permalake.web.state import RequestLake, lake_of

router = APIRouter(prefix="/api/proofs/v1", tags=["proof of inclusion"])
_LARGEST = 5_000_000
"""Rows of a table's day that a request may hash."""
_SLOTS = BoundedSemaphore(1)
Network = Annotated[str, Path(max_length=64, description="Network, or wormhole.", examples=["shimmer"])]
Day = Annotated[IsoDate, Path(description="UTC day.", examples=["2022-09-28"])]


class ProofOfDay(TypedDict):
    """A day's manifest, and its path to the signed root of the log (docs/digests.md)."""

    format: Literal["permalake-proof-1"]
    key: str
    checkpoint: str
    index: Count
    path: list[Bytes32]
    publication: Count
    manifest: Annotated[dict[str, Any], Field(description="The manifest, as docs/digests.md has it.")]


class PlaceOfRow(TypedDict):
    """A row's block, and the path from it to the digest of its table's day."""

    table: str
    block: Base64
    row: Count
    index: Count
    path: list[Bytes32]


class ProofOfRow(ProofOfDay):
    """The proof that a row belongs to a signed day."""

    row: PlaceOfRow


@router.get("/{network}/days/{day}", responses={**documented(501), **answer(ProofOfDay)})
def day_route(
    request: Request,
    network: Network,
    day: Day,
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the proof that a day's manifest is in the signed log: manifest, path, checkpoint and key."""
    lake = _lake(request, network)
    signed = signed_log(lake.settings)
    proof = day_proof(log_copy(lake.settings), signed, entry_of(signed, network, day))
    return current_json(request, None, proof)


@router.get("/{network}/{table}/{key}", responses={**documented(501), **answer(ProofOfRow)})
def row_route(
    request: Request,
    network: Network,
    table: Annotated[
        str,
        Path(
            description="messages, quorum_state, or another table with a key of one column.",
            examples=["messages"],
        ),
    ],
    key: Annotated[
        str, Path(max_length=200, description="A message's id, a VAA's row key …", examples=["00" * 32])
    ],
    query: Nothing,  # noqa: ARG001
) -> Response:
    """Return the proof that a row, such as a message with its bytes, is in the signed log.

    `permalake verify FILE` checks it. All rows of its table's day are hashed for it, one request at a time.
    """
    lake = _lake(request, network)
    contract = domain_of(network).tables.get(table)
    if contract is None:
        raise not_found(f"table {network}.{table}")
    signed = signed_log(lake.settings)
    column = _key_of(contract)
    day = _day_of(lake, contract, column, key)
    entry = entry_of(signed, network, day)
    proof = day_proof(log_copy(lake.settings), signed, entry)
    signed_table = proof["manifest"]["tables"].get(table)
    if signed_table is None:
        raise _unsigned(day)
    try:
        contract = as_signed(contract, signed_table, f"{network}.{table} of {day}")
    except PermalakeError as error:
        raise not_served(str(error)) from None
    placed = _placed(lake, contract, day, {column: key})
    if placed.digest.hex != signed_table["digest"]:
        raise _unsigned(day)
    return current_json(request, None, {**proof, "row": row_proof(table, placed)})


def _unsigned(day: date) -> ProblemError:
    return ProblemError(
        503, f"{day} was published anew and is not signed yet; try again", headers={"Retry-After": "60"}
    )


def signed_log(settings: Settings) -> ServedLog:
    """Return the lake's log; 501 where nothing is signed."""
    log = served_log(settings.lake.warehouse)
    if log is None:
        raise not_served("this lake is not signed: `permalake keys create` begins")
    return log


def log_copy(settings: Settings) -> LakeCopy:
    """Return the lake as a copy whose manifests can be read."""
    return LakeCopy(FolderPlace(settings.lake.warehouse), FOLDER, {})


def entry_of(signed: ServedLog, network: str, day: date) -> Entry:
    """Return the entry that counts of a day; 404 where it is not signed."""
    entry = signed.log.latest.get((network, day.isoformat()))
    if entry is None:
        raise not_found(f"a manifest of {network} {day}")
    return entry


def _lake(request: Request, network: str) -> RequestLake:
    if network not in published_state(request).networks():
        raise not_found(f"network {network}")
    return lake_of(request, network)


def _key_of(contract: Table) -> str:
    keys = [contract.column(name) for name in contract.key]
    if [key.type for key in keys] != ["string"] or contract.commit == "side":
        raise bad_request(f"rows of {contract.name} have no key of one column, or are not signed")
    return keys[0].name


def _day_of(lake: RequestLake, contract: Table, column: str, key: str) -> date:
    """Return the day of a row, found by an index of ids; 404 where there is no such row."""
    every = (contract, *domain_of(lake.network).tables.values())
    indexed = next(
        (table for table in every if column in table.lookups and column not in table.lookup_keys), None
    )
    if indexed is None:
        raise bad_request(f"rows of {contract.name} are not found by {column}")
    scan = lake.find(indexed.name, column, key)
    rows: list[Row] = []
    if not scan.is_empty:
        sql = f"SELECT date FROM {indexed.name} WHERE {column} = $key"  # noqa: S608
        rows = lake.rows(sql, {"key": key}, **{indexed.name: scan})
    if not rows:
        raise not_found(f"{column} {key}")
    day: date = rows[0]["date"]
    return day


def _placed(lake: RequestLake, contract: Table, day: date, key: dict[str, Any]) -> PlacedRow:
    table = lake.snapshot.table(lake.network, contract.name)
    if table is None:
        raise not_found(f"table {lake.network}.{contract.name}")
    if sum(file.rows for file in table.files if file.day == day) > _LARGEST:
        raise not_served(
            f"{day} has more than {_LARGEST:,} rows: make the proof by `permalake` beside the lake"
        )
    with _slot():
        placed = placed_row(dataset(contract, table.location, day, day), contract, key)
    if placed is None:
        raise not_found(f"{contract.name} {key}")
    return placed


@contextmanager
def _slot() -> Iterator[None]:
    if not _SLOTS.acquire(blocking=False):
        raise ProblemError(503, "another proof is under way; try again", headers={"Retry-After": "5"})
    try:
        yield
    finally:
        _SLOTS.release()
