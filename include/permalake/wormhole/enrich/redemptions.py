"""Redemptions from the RPCs of the target chains, each asked once and stored in ``redemptions``.

A fault is not stored: the next run asks again. What a chain answered is not asked again, but by ``--only
enrich`` as long as it told of no redemption, or of none with its transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from permalake.engine.rows import Relation
from permalake.pipeline.relations import QueryRunner, rows_where, table
from permalake.wormhole.contracts.redemption_tables import COMPLETED, IN_FLIGHT, REDEMPTIONS, RPC
from permalake.wormhole.enrich.collector import AnswerCache, Batch, Inquiry, Row, collect, counted
from permalake.wormhole.enrich.evm_redemptions import RedemptionAnswer, SentTransfer
from permalake.wormhole.enrich.questions import ChainRpc, Node
from permalake.wormhole.tables.redemptions import (
    KEPT,
    NEW,
    NEWS,
    SENT,
    SENT_TRANSFER,
    UNTOLD,
    UNTOLD_TRANSFERS,
    unsettled,
)

_TRANSFERS_PER_SEARCH = 200
"""Transfers in one search for logs: nodes bound the alternatives of a topic."""
_UNSETTLED = "unsettled"


@runtime_checkable
class RedemptionRpc(Node, Protocol):
    """The RPC of a chain whose bridges tell what was redeemed."""

    def redemptions(self, asked: Sequence[SentTransfer]) -> list[RedemptionAnswer]:
        """Return an answer to every transfer, in order."""
        ...


class Redemptions:
    """The RPCs of the configured chains behind ``redemptions``; ``again``: ask for what is in flight."""

    def __init__(
        self,
        rpcs: Mapping[int, ChainRpc],
        cache: AnswerCache,
        *,
        again: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rpcs = {number: rpc for number, rpc in rpcs.items() if isinstance(rpc, RedemptionRpc)}
        self._cache = cache
        self._again = again
        self._clock = clock

    def ask(self, runner: QueryRunner, sent: Relation, days: tuple[date, date]) -> None:
        """Store what the target chains tell of these transfers, and remark of which nobody tells.

        ``sent``: rows of :data:`~permalake.wormhole.tables.redemptions.SENT`. A chain without an RPC, and the
        fault of one, are remarks, never errors.
        """
        if self._rpcs:
            self._ask(runner, sent, days)
        given = {SENT: sent, KEPT: self._cache.read(*days)}
        left = runner.results({UNTOLD: UNTOLD_TRANSFERS}, {UNTOLD: SENT_TRANSFER}, given)
        self._remark_untold(left[UNTOLD])

    def _ask(self, runner: QueryRunner, sent: Relation, days: tuple[date, date]) -> None:
        query = unsettled(self._rpcs, again=self._again)
        given = {SENT: sent, KEPT: self._cache.read(*days)}
        asked = runner.results({_UNSETTLED: query}, {_UNSETTLED: SENT_TRANSFER}, given)[_UNSETTLED]
        inquiries = {
            number: Inquiry(self._rpcs[number], total, self._batches(number, asked))
            for number, total in counted(asked, "target_chain").items()
        }

        def store(rows: list[Row]) -> None:
            given = {NEW: pa.Table.from_pylist(rows, REDEMPTIONS.nullable), KEPT: self._cache.read(*days)}
            self._cache.add(runner.results({"news": NEWS}, {"news": REDEMPTIONS.nullable}, given)["news"])

        collect(inquiries, store)
        for number, inquiry in sorted(inquiries.items()):
            self._remark_open(number, inquiry)

    def _batches(self, chain: int, asked: Relation) -> Iterator[Batch]:
        """Ask a chain of the next transfers, again and again."""
        rows = rows_where(asked, pc.field("target_chain") == chain)
        while some := list(islice(rows, _TRANSFERS_PER_SEARCH)):
            answers = self._rpcs[chain].redemptions(
                [SentTransfer(row["row_key"], row["bridge"], row["digest"], row["at"]) for row in some]
            )
            moment = int(self._clock() * 1_000_000)
            settled = [
                _row(chain, row, answer, moment)
                for row, answer in zip(some, answers, strict=True)
                if answer.is_completed is not None and not answer.fault
            ]
            reasons = [why for answer in answers if (why := answer.fault or answer.reason)]
            yield Batch(settled, len(settled), reasons)

    def _remark_open(self, number: int, inquiry: Inquiry) -> None:
        if inquiry.reason:
            lost = sum(inquiry.reasons.values())
            self._cache.remark(
                f"redemptions: {inquiry.reason}; transfers to chain {number}: {inquiry.open} without an "
                f"answer, {max(lost - inquiry.open, 0)} without their transaction, fill in later with "
                "--only enrich",
                None,
            )

    def _remark_untold(self, left: Relation) -> None:
        rows = table(left)
        for day in sorted(set(rows["date"].to_pylist())):
            chains = rows.filter(pc.field("date") == day)["target_chain"].to_pylist()
            numbers = ", ".join(map(str, sorted(set(chains))))
            transfers = f"{len(chains)} transfer{'s' * (len(chains) > 1)}"
            self._cache.remark(
                f"redemptions: not known of {transfers} to chains {numbers}; "
                "neither operations nor chains.ID.rpc_url tell",
                day,
            )


def _row(chain: int, sent: Row, answer: RedemptionAnswer, moment: int) -> Row:
    return {
        "row_key": sent["row_key"],
        "target_chain": chain,
        "target_tx_id": answer.transaction,
        "redeemed_at": None if answer.at is None else answer.at * 1_000_000,
        "redeemer": answer.redeemer,
        "status": COMPLETED if answer.is_completed else IN_FLIGHT,
        "fee": answer.fee,
        "receiver_address": None,
        "token_address": None,
        "source": RPC,
        "asked_at": moment,
        "date": sent["date"],
    }
