"""The ledger that published days tell."""

from datetime import date

from permalake.iota.cone.ledger_history import history_before


def test_the_ledger_before_a_day_is_what_earlier_days_published(spark):
    first, second = date(2021, 5, 10), date(2021, 5, 11)

    def table(name):
        if name == "legacy_outputs":
            rows = [("aa" * 34, b"a", 1, first), ("bb" * 34, b"b", 1, first), ("cc" * 34, b"c", 5, second)]
            return spark.createDataFrame(
                rows, "output_id string, data binary, milestone_index int, date date"
            )
        rows = [
            ("aa" * 34, "11" * 32, 2, first),
            ("bb" * 34, "11" * 32, 6, second),
            ("00" * 32, None, 2, first),
        ]
        return spark.createDataFrame(
            rows, "output_id string, transaction_id string, milestone_index int, date date"
        )

    told = {tuple(row) for row in history_before(table, "chrysalis", second).collect()}
    spent = (b"\xaa" * 34, None, None, 2)
    assert told == {(b"\xaa" * 34, b"a", 1, None), (b"\xbb" * 34, b"b", 1, None), spent}
