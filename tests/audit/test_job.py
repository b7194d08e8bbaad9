"""The job on a real lake: a bad day stays back, readers keep its last good state."""

import json
from pathlib import Path

import pytest

from permalake import paths
from permalake.config import load_settings
from permalake.errors import PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.spark import sizes
from support.audit_days import DAYS, FIRST, find, small_network
from support.jobs import job
from support.lakes import OpenLake, put

NETWORK = "shimmer"


@pytest.fixture
def lake(tmp_path, monkeypatch):
    config = tmp_path / "permalake.toml"
    config.write_text(
        f'[lake]\nwarehouse = "{tmp_path}/lake"\n[networks.{NETWORK}]\nprotocol = "stardust"\n'
        f'bech32_hrp = "smr"\npath = "{tmp_path}"\n'
    )
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")
    return OpenLake(load_settings())


def audit(start, end, run_id, spark=None) -> None:
    arguments = ["--network", NETWORK, "--start", str(start), "--end", str(end), "--run-id", run_id]
    job("audit")(arguments, spark)


def staged(lake, rows, days, run_id):
    """An attempt with rows of these days in every table."""
    attempt = lake.begin(NETWORK, days[0], days[-1], run_id)
    for name, table in IOTA_TABLES.items():
        here = [row for row in rows[name] if row["date"] in days]
        if here and table.commit == "day":
            named = [{column: row[column] for column in table.names} for row in here]
            put(load_settings(), attempt, name, named)
    return attempt


def published(lake):
    """What readers see: transaction_count per milestone."""
    sql = "select milestone_index, transaction_count from shimmer.ms_analytics order by 1"
    return [tuple(row.values()) for row in lake.query(sql).to_pylist()]


@pytest.mark.parametrize("in_memory", [200_000, pytest.param(0, marks=pytest.mark.long)])
def test_one_bad_day_of_three_stays_on_its_last_good_state(lake, spark, monkeypatch, in_memory) -> None:
    """Whether the rows are read at once or scanned in their files."""
    monkeypatch.setattr(sizes, "MEMORY_ROWS", in_memory)
    good = small_network()
    first = staged(lake, good, DAYS[1:2], "first")
    pinned = first.pin()
    pinned.verdict(DAYS[1], True)
    lake.builds.publish(pinned)
    before = published(lake)
    assert before == [(FIRST + 2, 0), (FIRST + 3, 0)]

    bad = small_network()
    find(bad, "ms_analytics", milestone_index=FIRST + 2)["transaction_count"] = 2
    staged(lake, bad, DAYS, "range")
    audit(DAYS[0], DAYS[-1], "range", spark)
    verdicts = lake.pinned(NETWORK, "range").verdicts()
    assert {day: ok for day, (ok, _) in verdicts.items()} == {DAYS[0]: True, DAYS[1]: False, DAYS[2]: True}
    line = "ms_analytics: transactions_add_up: milestone 102 expected 0, found 2"
    assert verdicts[DAYS[1]][1] == [line]
    publication = lake.publish(NETWORK, "range")
    assert publication.days == (DAYS[0], DAYS[2])
    assert line in publication.withheld[DAYS[1]]
    assert published(lake) == [(FIRST + index, 0) for index in range(6)]

    staged(lake, bad, DAYS[1:2], "again")
    with pytest.raises(PermalakeError) as failure:
        audit(DAYS[1], DAYS[1], "again", spark)
    told, page = str(failure.value).split("; docs: ")
    assert told == f"audit of shimmer 2022-09-29 failed: {line}"
    text = Path(page).read_text()
    assert "transactions_add_up" in text
    assert "http://" not in text
    assert "https://" not in text
    index = (paths.HOME / "audit" / "index.html").read_text()
    assert line in index
    assert lake.publish(NETWORK, "again").days == ()
    assert published(lake) == [(FIRST + index, 0) for index in range(6)]
    summary = json.loads((Path(page).parent / "summary.json").read_text())
    assert (summary["passed"], summary["days"]) == (0, 1)


def test_a_range_without_rows_has_nothing_to_judge(lake) -> None:
    lake.begin(NETWORK, DAYS[0], DAYS[2], "empty")
    audit(DAYS[0], DAYS[2], "empty")
    assert lake.pinned(NETWORK, "empty").verdicts() == {}
