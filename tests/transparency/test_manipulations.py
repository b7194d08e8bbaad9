"""Seeded manipulations of exports of both domains: each is refused and named, and nothing of it is landed.

Eight seeds of each in ``make long``; in ``make test`` more of IOTA's, and fewer of Wormhole's, whose checks
take longer.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from permalake.contracts.steps import Publishers
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.transparency import seen
from permalake.transparency.copies import ExportCopy
from permalake.transparency.landed import LandedDays
from permalake.transparency.places import open_place
from permalake.transparency.publisher import open_publisher
from permalake.transparency.verify import verify
from support.lakes import settings_of
from support.length import LONG
from support.manipulations import (
    FIXED,
    LISTS,
    MANIPULATIONS,
    UNSEEN_BY_DIGESTS,
    Exports,
    flip,
    iota_exports,
    wormhole_exports,
)
from support.second_verifier import second_verifier
from support.signed_lakes import public_key, table_of

pytestmark = pytest.mark.scaled

SEEDS = {"shimmer": 8, "wormhole": 8} if LONG else {"shimmer": 9, "wormhole": 3}
"""Seeds of each manipulation, by network, where chance has a part in it."""
READ_BY_A_CHECK_ALONE = (
    *("a bit of a manifest", "a truncated file", "a missing file", "false bounds in a footer"),
    *LISTS,
)
"""Manipulations that may hit a manifest which another one replaced, the list, or a footer, which is not
taken over."""


@pytest.fixture(scope="module", params=[iota_exports, wormhole_exports], ids=["iota", "wormhole"])
def exports(home, tmp_path_factory, request):
    exports = request.param(tmp_path_factory.mktemp("exports"))
    yield exports
    checked(exports.newer)  # links to its files were replaced, never written into


def checked(folder: Path):
    return verify(ExportCopy(open_place(str(folder))), table_of, key=public_key())


@pytest.fixture(scope="module")
def remembered(exports):
    """What this machine keeps after it saw the newer export, so that going back is noticed."""
    seen.FILE.unlink(missing_ok=True)
    assert sum(checked(exports.newer).days.values()) >= 3
    return seen.FILE.read_bytes()


def landed(exports: Exports, source: Path, place: Path) -> dict[str, bytes]:
    """Land all days of a copy as a mirror does; return what lies there by manifest and table."""
    network = exports.network
    tables = [table for table in domain_of(network).tables.values() if table.commit != "side"]
    days = open_publisher(str(exports.newer), [str(public_key())]).days(network)
    landing = LandedDays(settings_of(place), network, Publishers((str(source),), (str(public_key()),)))
    return {
        f"{day.manifest} {table.name}": Path(file).read_bytes()
        for date in days
        for day in landing.land(date, date, tables).values()
        for table in tables
        if (file := day.file(table.name))
    }


@pytest.fixture(scope="module")
def signed(exports, remembered, tmp_path_factory):
    return landed(exports, exports.newer, tmp_path_factory.mktemp("honest"))


def attempted(work, *arguments):
    """What some work gives, and why it was refused; one of both is None."""
    try:
        return work(*arguments), None
    except PermalakeError as error:
        return None, str(error)


def seeds(what: str, network: str) -> range:
    """The seeds of a manipulation of a network's export."""
    return range(1 if what in FIXED else SEEDS[network])


def test_there_are_at_least_200_manipulations() -> None:
    assert set(FIXED) < set(MANIPULATIONS)
    assert sum(len(seeds(what, network)) for what in MANIPULATIONS for network in SEEDS) >= 200


@pytest.mark.parametrize("what", MANIPULATIONS)
def test_whatever_a_host_does_is_refused_and_nothing_of_it_is_landed(
    exports, remembered, signed, tmp_path, what
) -> None:
    for seed in seeds(what, exports.network):
        copy = exports.copy(tmp_path / f"copy-{seed}")
        MANIPULATIONS[what](copy, random.Random(f"{what} {seed}"))
        seen.FILE.write_bytes(remembered)
        _, reason = attempted(checked, copy.folder)
        assert reason, seed
        assert "\n" not in reason
        assert seen.FILE.read_bytes() == remembered
        place = tmp_path / f"place-{seed}"
        found, reason = attempted(landed, exports, copy.folder, place)
        assert {file.read_bytes() for file in place.rglob("*.parquet")} <= set(signed.values()), seed
        assert reason or (found == signed and what in READ_BY_A_CHECK_ALONE), seed


@pytest.mark.parametrize("what", [*UNSEEN_BY_DIGESTS, "false bounds in a footer", *LISTS])
def test_the_second_verifier_refuses_what_a_digest_does_not_show(exports, tmp_path, what) -> None:
    second_verifier().main(exports.newer, str(public_key()))
    for seed in seeds(what, exports.network):
        copy = exports.copy(tmp_path / f"copy-{seed}")
        MANIPULATIONS[what](copy, random.Random(f"{what} {seed}"))
        with pytest.raises(SystemExit, match=r"columns and types of the manifest|not a list of|its footer"):
            second_verifier().main(copy.folder, str(public_key()))


def test_what_is_changed_beside_the_days_is_refused_or_does_not_count(
    exports, remembered, signed, tmp_path
) -> None:
    """Lists, descriptions, files of earlier days, and the key beside the export."""
    names = exports.copy(tmp_path / "names").others
    assert {"README.md", "files.json", "log/key"} <= set(names)
    names.remove("files.json")
    for paths in (["files.json"], names):
        copy = exports.copy(tmp_path / f"copy-{len(paths)}")
        for path in paths:
            flip(copy, path, random.Random(path))
        seen.FILE.write_bytes(remembered)
        _, reason = attempted(checked, copy.folder)
        assert reason is None or paths == ["files.json"], reason
        if reason is None:
            assert landed(exports, copy.folder, tmp_path / f"place-{len(paths)}") == signed
