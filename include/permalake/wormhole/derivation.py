"""Derives published days of Wormhole again from their signed VAAs, in this process.

The same code that judges documents judges the lake: every signature is recovered, every payload is decoded
again, and the tables of events are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from permalake.config import Settings
from permalake.contracts import Table
from permalake.transparency.deep import RawDay, TableFolder, UnderivedError
from permalake.transparency.row_order import ordered_rows
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.tables import MESSAGE_PUBLICATION, QUORUM_STATE
from permalake.wormhole.reference import Reference, load_reference
from permalake.wormhole.tables.copies import distinct_vaas, of_days
from permalake.wormhole.tables.documents import identities
from permalake.wormhole.tables.event_tables import EVENT_TABLES, event_tables
from permalake.wormhole.tables.signed_documents import signed_documents
from permalake.wormhole.tables.verified_vaas import PUBLISHED, verified


class BridgeDerivation:
    """Derives days of Wormhole, in their order."""

    tables = tuple(EVENT_TABLES)

    def __init__(self, settings: Settings, network: str) -> None:
        self._network = network
        self._reference = load_reference(settings.wormhole.reference if settings.wormhole else None)
        self._of_publisher: set[str] = set()
        self._used: set[str] = set()
        self._messages = 0

    def derive(
        self,
        day: RawDay,
        before: Callable[[], RawDay | None],  # noqa: ARG002
        tables: TableFolder,
    ) -> None:
        """Write the day's tables, as :class:`~permalake.transparency.deep.Derivation` has it."""
        reference = self._with_sets(day)
        reported = day.rows(MESSAGE_PUBLICATION.name).to_table(columns=["row_key", "initiating_tx_id"])
        for part in ordered_rows(
            day.rows(QUORUM_STATE.name), QUORUM_STATE, ["row_key", "signed_vaa", "date"]
        ):
            documents = signed_documents(part, reported, "lake")
            [identified_vaas] = [pa.Table.from_batches(identities(documents.to_batches()))]
            verdicts = verified(of_days(distinct_vaas(identified_vaas), day.date, day.date), reference)
            self._check(verdicts.vaas, part, day)
            for name, rows in event_tables(verdicts):
                tables.add(name, _shaped(rows, EVENT_TABLES[name]))
            self._messages += len(part)

    def proven(self) -> Iterator[str]:
        """Yield what was proven."""
        yield (
            f"built again from their raw bytes: {self._messages:,} VAAs, which are messages with their "
            "signatures. More than two thirds of Wormhole's guardians signed each, all validly."
        )
        yield f"tables made again from them have the same rows: {', '.join(self.tables)}."

    def rests_on(self) -> Iterator[str]:
        """Yield whose keys it rests on."""
        set_numbers = sorted(self._used - self._of_publisher, key=int)
        if set_numbers:
            yield f"guardian sets {', '.join(set_numbers)}, as this machine's reference data has them."
        if self._of_publisher:
            yield (
                f"guardian sets {', '.join(sorted(self._of_publisher, key=int))}, which the publisher "
                "alone names: compare their guardians with Wormhole's own word."
            )

    def not_covered(self) -> Iterator[str]:
        """Yield what it does not cover."""
        yield "VAAs that the publisher left out: gaps in an emitter's sequences are the only sign of them."
        yield "transactions of messages (initiating_tx_id), and when guardians observed them: others' word."
        others = sorted(
            name
            for name, contract in WORMHOLE_TABLES.items()
            if contract.commit != "side" and name not in self.tables
        )
        yield f"what needs prices or answers of chains, and sums: signed alone ({', '.join(others)})."

    def _with_sets(self, day: RawDay) -> Reference:
        """Return the reference with the guardian sets that only the manifest names."""
        sets: dict[int, tuple[bytes, ...]] = dict(self._reference.guardian_sets)
        for index, said in day.manifest["verified"].get("guardian_sets", {}).items():
            guardians = _guardians(said)
            self._used.add(index)
            if int(index) not in sets:
                sets[int(index)] = guardians
                self._of_publisher.add(index)
            elif guardians and sets[int(index)] != guardians:
                raise UnderivedError(
                    f"{self._network} {day.date}: the manifest's guardian set {index} is not the known one: "
                    f"{len(guardians)} guardians are named, {len(sets[int(index)])} are known"
                )
        return replace(self._reference, guardian_sets=sets)

    def _check(self, vaas: pa.Table, rows: pa.Table, day: RawDay) -> None:
        """Refuse the day with the first VAA that does not hold."""
        where = f"{self._network}.{QUORUM_STATE.name} of {day.date}"
        refused = vaas.filter(pc.not_equal(vaas["outcome"], PUBLISHED)).sort_by("origin")
        if len(refused):
            first = refused.slice(0, 1).to_pylist()[0]
            reason = first["detail"] or "it would not be published"
            raise UnderivedError(f"{where}: row_key {first['origin']}: {first['outcome']}: {reason}")
        renamed = vaas.filter(pc.not_equal(vaas["row_key"], vaas["origin"])).sort_by("origin")
        if len(renamed):
            first = renamed.slice(0, 1).to_pylist()[0]
            raise UnderivedError(
                f"{where}: row_key {first['origin']}: its bytes are the VAA of {first['row_key']}"
            )
        if len(vaas) != len(rows):
            there = pc.is_in(rows["row_key"], value_set=vaas["origin"].combine_chunks())
            strangers = rows.filter(pc.invert(there))["row_key"].to_pylist()
            named = strangers[0] if strangers else rows["row_key"][0].as_py()
            raise UnderivedError(f"{where}: row_key {named}: its VAA is of another day, or is there twice")


def derivation(settings: Settings, network: str) -> BridgeDerivation:
    """Return the derivation of Wormhole's days."""
    return BridgeDerivation(settings, network)


def _guardians(said: Mapping[str, Any]) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(guardian.removeprefix("0x")) for guardian in said["guardians"])


def _shaped(rows: pa.Table, contract: Table) -> pa.Table:
    """Return rows with the contract's columns and types; what is not given is null."""
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in contract.nullable
    ]
    return pa.table(columns, schema=contract.nullable)
