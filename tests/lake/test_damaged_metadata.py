"""One damaged metadata file: its table is named, the other networks go on."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from permalake.cli import main as front
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.lake.catalog import open_table, unreadable
from permalake.pipeline import maintenance
from support.lakes import DAY1, DAY2, NETWORK, build, messages, pass_audit, put

OTHER = "iota"


def path(location):
    return Path(location.removeprefix("file://"))


@pytest.fixture
def damaged(settings, lake):
    """Function that damages a table of the first network: its metadata file or its manifest list."""
    build(settings, lake, DAY1, 1, 5, "a")
    other = lake.begin(OTHER, DAY2, DAY2, "b")
    put(settings, other, "messages", messages(DAY2, 2, 3))
    lake.builds.publish(pass_audit(other))

    def damage(table, manifest_list=False):
        location = lake.reader.locations(NETWORK)[table]
        file = path(open_table(location).current_snapshot().manifest_list if manifest_list else location)
        file.write_bytes(file.read_bytes()[:100])

    return damage


@pytest.mark.parametrize("manifest_list", [False, True])
def test_status_names_the_table_and_shows_all_networks(lake, damaged, manifest_list) -> None:
    damaged("date_cache", manifest_list)
    first, second = sorted(lake.reader.status(), key=lambda day: day.date)
    assert (first.network, second.network, second.gaps) == (NETWORK, OTHER, [])
    (gap,) = first.gaps
    assert gap.startswith("gaps are unknown: shimmer.date_cache: ")
    assert "cannot be read" in gap
    assert "\n" not in gap


@pytest.mark.parametrize("manifest_list", [False, True])
def test_every_damaged_table_is_named_in_our_words(
    settings, lake, damaged, manifest_list, tmp_path, capsys
) -> None:
    assert unreadable(lake.reader.locations(NETWORK)) == {}
    damaged("messages", manifest_list)
    location = lake.reader.locations(NETWORK)["ms_analytics"]
    path(location).unlink()
    part = "the manifest list of " if manifest_list else ""
    faults = {
        "messages": f"{part}{lake.reader.locations(NETWORK)['messages']} cannot be read: the file is damaged",
        "ms_analytics": f"{location} cannot be read: the file is missing",
    }
    config = tmp_path / "permalake.toml"
    config.write_text(f'[lake]\nwarehouse = "{settings.lake.warehouse}"\n', "utf-8")
    with pytest.raises(SystemExit) as end:
        front.main(["status", "--config", str(config)])
    assert not end.value.code
    assert capsys.readouterr().err.splitlines() == [
        f"permalake: {NETWORK}.{table}: {fault}; see docs/runbooks/restore.md"
        for table, fault in faults.items()
    ]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("manifest_list", [False, True])
def test_maintenance_names_the_table_and_goes_on(settings, lake, damaged, manifest_list, dry_run) -> None:
    damaged("messages", manifest_list)
    assert maintenance.fragmented_networks(settings, domain_of, [NETWORK, OTHER]) == []
    found = maintenance.housekeeping(settings, domain_of, [NETWORK, OTHER], "run", dry_run=dry_run)
    done = {one.name: one for one in found}
    assert "cannot be" in done["shimmer.messages"].spared
    assert done["shimmer.date_cache"].spared is None
    assert done["iota.messages"].spared is None


def test_maintenance_of_other_networks_goes_on_when_one_is_refused(settings, lake, damaged) -> None:
    from permalake.lake.maintenance.commit import alone

    with alone(settings, lake.database, NETWORK, "somebody else"):
        names: list[str] = []
        found = maintenance.housekeeping(settings, domain_of, [NETWORK, OTHER], "run")
        with pytest.raises(PermalakeError, match="shimmer is being maintained by run"):
            names.extend(one.name for one in found)
        assert "iota.messages" in names


@pytest.mark.parametrize("manifest_list", [False, True])
def test_a_run_that_cannot_read_what_is_published_is_not_unchanged(lake, damaged, manifest_list) -> None:
    assert lake.builds.is_unchanged(NETWORK, DAY1, DAY1, "")
    assert not lake.builds.is_unchanged(NETWORK, DAY1, DAY1, "other input")
    damaged("messages", manifest_list)
    with pytest.raises(PermalakeError, match=r"shimmer/messages/metadata/.* cannot be read: .*restore\.md"):
        lake.builds.is_unchanged(NETWORK, DAY1, DAY1, "")
    assert lake.builds.is_unchanged(OTHER, DAY2, DAY2, "")


def test_a_query_of_the_table_fails_on_one_line_and_others_work(lake, damaged) -> None:
    damaged("messages")
    with pytest.raises(PermalakeError, match="cannot be read"):
        lake.query("from shimmer.messages")
    assert lake.query("from shimmer.ms_analytics", datetime.now(UTC)).num_rows == 1
