"""The ledger in the lake: rows found by the server's index of ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from permalake.contracts.rows import Row
from permalake.iota.rest.ledger_reader import LedgerList
from permalake.iota.rest.paged_rows import paged_rows
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

        The id index names the milestones that hold such rows; ``among``, where the caller knows better.
        """
        columns = ", ".join((*question.columns, "milestone_index", question.tie))
        conditions = [f"{question.column} = $value", *(f"{name} = ${name}" for name in question.equal)]
        return paged_rows(
            self._lake,
            page,
            self.places(question) if among is None else among,
            f"SELECT {columns} FROM {question.table} WHERE {' AND '.join(conditions)}",  # noqa: S608
            {"value": question.value, **question.equal},
            tables=(question.table,),
            ties=(question.tie,),
            newest=question.newest,
        )

    def places(self, question: LedgerList) -> Sequence[int]:
        """Return the milestones that may hold rows of a list."""
        milestones = self._lake.find(question.table, question.column, question.value).milestones or ()
        return [index for index in milestones if index <= question.last]
