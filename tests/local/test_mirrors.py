"""``permalake mirror`` before it builds: which publishers, networks and days it goes on with."""

from __future__ import annotations

from datetime import date

import pytest

from permalake.cli.main import main
from permalake.config import load_settings
from permalake.contracts.steps import Publishers
from permalake.errors import PermalakeError
from permalake.local import mirrors
from permalake.transparency import keys, seen
from permalake.transparency.landed import LandedDays
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build, pass_audit, settings_of, stage_day
from support.signed_lakes import NAME, at_home, export, public_key, sign

SECTION = f'[networks.{NETWORK}]\nprotocol = "stardust"\nbech32_hrp = "smr"\npath = "{{0}}"\n'


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A home with a key, and the export of a small lake that it signed."""
    folder = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        at_home(patch, folder)
        keys.create_key(NAME)
        settings = settings_of(folder / "publisher")
        lake = OpenLake(settings)
        for at, day in enumerate((DAY1, DAY2, DAY3)):
            build(settings, lake, day, at + 1, 3, f"run-{at}")
        sign(settings, lake)
        export(settings, lake, folder / "export")
    return folder


@pytest.fixture
def copy(published, monkeypatch):
    """The export, which this machine has not seen before."""
    at_home(monkeypatch, published)
    seen.FILE.unlink(missing_ok=True)
    return published / "export"


@pytest.fixture
def mirror(tmp_path, monkeypatch, capsys):
    """Call the command with a configuration; return exit code, both outputs and the built ranges."""
    built = []

    def run_range(settings, network, first, last, **_):
        section = load_settings().network(network)
        built.append((network, first, last, section.source, section.url, section.fallback))
        return 0

    monkeypatch.setattr(mirrors, "run_range", run_range)
    config = tmp_path / "permalake.toml"
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))

    def call(*arguments, section=SECTION):
        config.write_text(f'[lake]\nwarehouse = "{tmp_path}/mirror"\n{section.format(tmp_path)}')
        with pytest.raises(SystemExit) as ended:
            main(["mirror", *map(str, arguments)])
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err, built

    return call


def test_every_signed_day_is_built_from_the_publishers_that_can_be_read(mirror, copy, tmp_path) -> None:
    code, said, remarks, built = mirror(tmp_path / "nowhere", copy, copy)
    assert code == 0
    assert f"signed by {public_key()}; the key came with the copy: compare it" in said
    assert f"{tmp_path}/nowhere/files.json is missing" in remarks
    assert built == [(NETWORK, DAY1, DAY3, "permalake", str(copy), (str(copy),))]
    assert load_settings().network(NETWORK).source == "archive_rest"


def test_days_and_networks_are_chosen(mirror, copy) -> None:
    *_, built = mirror(copy, "--from", DAY2, "--to", DAY2, "--network", NETWORK)
    assert [one[:3] for one in built] == [(NETWORK, DAY2, DAY2)]


def test_long_ranges_are_cut(copy) -> None:
    days = [date.fromordinal(DAY1.toordinal() + at) for at in (*range(9), 20)]
    assert list(mirrors._spans(days)) == [
        (days[0], days[6]),
        (days[7], days[8]),
        (days[9], days[9]),
    ]


def test_a_day_that_cannot_be_copied_keeps_no_other_one_from_it(mirror, copy, monkeypatch) -> None:
    """Whatever fails in a span, its days are then tried alone; those that were published are not."""
    tried = []

    def run_range(settings, network, first, last, **_):
        tried.append((first, last))
        if first <= DAY2 <= last:
            raise PermalakeError("the day does not hold")
        lake = OpenLake(settings)
        attempt = lake.begin(network, first, last, f"run-{first}")
        [landed] = LandedDays(settings, network, publishers).land(first, last, []).values()
        attempt.record.note(landed.note)
        stage_day(settings, attempt, first, 1, 3)
        lake.builds.publish(pass_audit(attempt))
        lake.leave()
        return 0

    publishers = Publishers((str(copy),), (str(public_key()),))
    monkeypatch.setattr(mirrors, "run_range", run_range)
    code, _, said, _ = mirror(copy)
    assert tried == [(DAY1, DAY3), (DAY1, DAY1), (DAY2, DAY2), (DAY3, DAY3)]
    assert (code, said.splitlines()[-1]) == (
        1,
        f"permalake: not copied: {NETWORK} {DAY2}: the day does not hold",
    )
    assert mirror(copy)[0] == 1
    assert tried[4:] == [(DAY2, DAY2)]


@pytest.mark.parametrize(
    ("arguments", "section", "reason"),
    [
        (["/nowhere"], SECTION, "no publisher can be read"),
        (["COPY", "--network", "other"], SECTION, "--network other: no publisher has it (they have shimmer)"),
        (["COPY"], "", "none of the publishers' networks is configured: shimmer"),
        (["COPY", "--network", NETWORK], "", f"{NETWORK}: add [networks.{NETWORK}], which says by what keys"),
        (["COPY", "--from", "2022-09-30", "--to", "2022-09-01"], SECTION, "swap the two days"),
        (["COPY", "--from", "yesterday"], SECTION, "write it as YYYY-MM-DD"),
        (["COPY", "--key", "nonsense"], SECTION, "is no key"),
    ],
)
def test_what_cannot_be_mirrored_is_said(mirror, copy, arguments, section, reason) -> None:
    given = [copy if one == "COPY" else one for one in arguments]
    code, _, said, built = mirror(*given, section=section)
    assert code in (1, 2)
    assert reason in said.splitlines()[-1]
    assert built == []
