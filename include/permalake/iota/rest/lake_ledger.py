"""The ledger in the lake: rows found by the server's index of ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from permalake.contracts.rows import Row
from permalake.iota.rest.ledger_reader import LedgerList
from permalake.lake.serving import Scan
from permalake.web.paging import ListPage
from permalake.web.problems import not_found
from permalake.web.state import RequestLake, copied_rows


class LakeLedger:
    """Reads the ledger from the lake alone; see :class:`~permalake.iota.rest.ledger_reader.LedgerReader`."""

    def __init__(self, lake: RequestLake) -> None:
        self._lake = lake

    def message(self, message_id: str) -> Row:
        """Return a message's row with its white_flag_index."""
        return self._message(message_id, self._lake.find("messages", "message_id", message_id))

    def _message(self, message_id: str, scan: Scan) -> Row:
        copies = copied_rows(self._lake, "messages", scan, "message_id", message_id)
        if not copies:
            raise not_found(message_id)
        return copies[0]

    def included_message(self, transaction_id: str) -> Row:
        """Return the message with which a transaction was included."""
        rows = self._lake.rows(
            "SELECT message_id, milestone_index FROM transactions "
            "WHERE transaction_id = $id AND inclusion_state = 1 LIMIT 1",
            {"id": transaction_id},
            transactions=self._lake.find("transactions", "transaction_id", transaction_id),
        )
        if not rows:
            raise not_found(f"an included message of transaction {transaction_id}")
        return self._message(rows[0]["message_id"], Scan(milestones=[rows[0]["milestone_index"]]))

    def output(self, output_id: str, kinds: Iterable[str]) -> Row:
        """Return an output's row."""
        for kind in kinds:
            table = f"{kind}_outputs"
            scan = self._lake.find(table, "output_id", output_id)
            if scan.is_empty:
                continue
            kind_columns = ", message_id" if kind == "legacy" else ""
            rows = self._lake.rows(
                f"SELECT output_id, '{kind}' AS kind, amount, data, milestone_index, "  # noqa: S608
                f"ms_timestamp{kind_columns} FROM {table} WHERE output_id = $id",
                {"id": output_id},
                **{table: scan},
            )
            if rows:
                return rows[0]
        raise not_found(output_id)

    def milestone(self, index: int) -> Row:
        """Return a milestone's row."""
        copies = copied_rows(self._lake, "milestones", Scan(milestones=(index,)), "milestone_index", index)
        if not copies:
            raise not_found(f"milestone {index}")
        return copies[0]

    def listed(self, question: LedgerList, page: ListPage, among: Iterable[int] | None = None) -> list[Row]:
        """Return one page of a list, and one row more if there is one.

        Only as many milestones are read as the page needs: the id index names those that hold such rows.
        ``among`` names them where the caller knows better.
        """
        candidates = self.places(question) if among is None else among
        places = sorted(candidates, reverse=question.newest)
        bound: dict[str, Any] = {"value": question.value, **question.equal}
        conditions = [f"{question.column} = $value", *(f"{name} = ${name}" for name in question.equal)]
        if page.after:
            at, last = page.after
            places = [index for index in places if (index <= at if question.newest else index >= at)]
            compare = "<" if question.newest else ">"
            conditions.append(f"(milestone_index, {question.tie}) {compare} ($at, $last)")
            bound |= {"at": at, "last": last}
        order = "DESC" if question.newest else "ASC"
        columns = ", ".join((*question.columns, "milestone_index", question.tie))
        rows: list[Row] = []
        while places and len(rows) <= page.size:
            portion, places = places[: page.size + 1], places[page.size + 1 :]
            rows += self._lake.rows(
                f"SELECT {columns} FROM {question.table} WHERE {' AND '.join(conditions)} "  # noqa: S608
                f"ORDER BY milestone_index {order}, {question.tie} {order} LIMIT {page.size + 1 - len(rows)}",
                bound,
                **{question.table: Scan(milestones=portion)},
            )
        return rows

    def places(self, question: LedgerList) -> Sequence[int]:
        """Return the milestones that may hold rows of a list."""
        return list(self._lake.find(question.table, question.column, question.value).milestones or ())
