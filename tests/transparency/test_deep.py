"""``verify --deep``: honest days are derived again; what a dishonest publisher signed is named."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from datetime import timedelta
from types import SimpleNamespace

import pytest

from permalake.config import load_settings
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.transparency import seen
from permalake.transparency.copies import ExportCopy
from permalake.transparency.deep import RawDay, UnderivedError
from permalake.transparency.places import open_place
from permalake.transparency.report import report
from permalake.transparency.verify import verify
from support.dishonest import changed, flipped, last_row, without
from support.lakes import pass_audit
from support.publishers import lying_export
from support.signed_lakes import export, lake_copy, public_key, sign, table_of
from support.worlds import build_tangle, build_vaas, tangle, vaas

JARGON = re.compile(
    r"(?i)\b(merkle|roots?|hash\w*|lea(?:f|ves)|tiles?|manifests?|checkpoints?|iceberg|cones?|digests?)\b"
)
SMALL = {"messages": 900, "days": 2, "empty_days": (), "milestones_per_day": 45}


@pytest.fixture(autouse=True)
def forgotten(home) -> None:
    """Each test sees the logs for the first time."""
    seen.FILE.unlink(missing_ok=True)


def _built(spark, folder, make, world):
    """A world built by the real jobs, published, signed and exported."""
    with pytest.MonkeyPatch.context() as patch:
        built, _ = make(spark, folder, patch, world)
        built.lake.builds.publish(pass_audit(built.attempt))
        settings = load_settings()
    sign(settings, built.lake)
    export(settings, built.lake, folder / "export")
    raw = "quorum_state" if built.network == "wormhole" else "messages"
    counted = f'SELECT count(*) AS messages FROM "{built.network}".{raw}'
    return SimpleNamespace(
        settings=settings,
        lake=built.lake,
        network=built.network,
        export=folder / "export",
        days=[world.start + timedelta(at) for at in range(world.days)],
        messages=built.lake.query(counted).to_pylist()[0]["messages"],
    )


@pytest.fixture(scope="module")
def stardust(spark, home, tmp_path_factory):
    return _built(spark, tmp_path_factory.mktemp("stardust"), build_tangle, tangle("stardust", **SMALL))


@pytest.fixture(scope="module")
def chrysalis(spark, home, tmp_path_factory):
    return _built(spark, tmp_path_factory.mktemp("chrysalis"), build_tangle, tangle("chrysalis", **SMALL))


@pytest.fixture(scope="module")
def bridge(spark, home, tmp_path_factory):
    return _built(spark, tmp_path_factory.mktemp("bridge"), build_vaas, vaas(messages=400, days=2))


def checked(settings, copy, *, deep=True, **options):
    def derivation_of(network):
        return domain_of(network).derivation_of(settings, network)

    return verify(copy, table_of, key=public_key(), derivation_of=derivation_of if deep else None, **options)


@pytest.mark.parametrize("name", ["stardust", "chrysalis", "bridge"])
def test_an_honest_lake_is_derived_again(name, request) -> None:
    world = request.getfixturevalue(name)
    done = checked(world.settings, lake_copy(world.settings, world.lake))
    words = "\n".join(report(done))
    shallow = checked(world.settings, lake_copy(world.settings, world.lake), deep=False)
    for said in (words, "\n".join(report(shallow))):
        assert not JARGON.findall(said), "it is read by somebody who has never seen such a check"
    assert f"built again from their raw bytes: {world.messages:,} " in words


def test_an_export_is_derived_again_by_a_machine_without_settings(stardust) -> None:
    """What a stranger has: the export, and the rules and keys that its manifests name."""
    stranger = stardust.settings.model_copy(update={"networks": {}})
    done = checked(stranger, ExportCopy(open_place(str(stardust.export))))
    assert "the publisher alone names: compare them" in "\n".join(report(done))


def test_a_day_alone_takes_what_it_refers_to_from_the_day_before(stardust, tmp_path) -> None:
    second = stardust.days[1].isoformat()
    options = {"is_checked": lambda entry: entry.date == second}
    copy = shutil.copytree(stardust.export, tmp_path / "copy")
    place = open_place(str(copy))
    assert "did not read" not in "\n".join(report(checked(stardust.settings, ExportCopy(place), **options)))
    listed = json.loads((copy / "files.json").read_text())
    (copy / "files.json").write_text(json.dumps([one for one in listed if f"/{second}-" in one["path"]]))
    for one in listed:
        if f"/{second}-" not in one["path"]:
            (copy / one["path"]).unlink()
    words = "\n".join(report(checked(stardust.settings, ExportCopy(place), **options)))
    assert f"messages before {second}, which this check did not read" in words


def _swapped(rows):
    """Two messages of one milestone change places."""
    first = last_row(rows, white_flag_index=3)
    milestone = rows["milestone_index"][first].as_py()
    second = last_row(rows, white_flag_index=2, milestone_index=milestone)
    return changed(changed(rows, first, white_flag_index=2), second, white_flag_index=3)


def _rehashed(rows):
    """A message gets other bytes, and the id that belongs to them."""
    at = last_row(rows, inclusion_state=2)
    raw = flipped(-1)(rows["message"][at].as_py())
    return changed(rows, at, message=raw, message_id=hashlib.blake2b(raw, digest_size=32).hexdigest())


def _other_bytes(rows):
    at = next(at for at, content in reversed(list(enumerate(rows["data"].to_pylist()))) if content)
    return changed(rows, at, data=flipped(3))


LIES = {
    "bytes of a message": (
        "messages",
        lambda rows: changed(rows, 40, message=flipped(-1)),
        r"\.messages of .*: milestone \d+: id_mismatch: block [0-9a-f]{64}: its bytes have the id ",
    ),
    "id of a message": (
        "messages",
        lambda rows: changed(rows, 40, message_id="ab" * 32),
        r"\.messages of .*: id_mismatch: block (ab){32}: its bytes have the id",
    ),
    "bytes and id": (
        "messages",
        _rehashed,
        r"\.m\w+ of .*: (not_in_cone|parent_missing|inclusion_root|milestone_message_missing)",
    ),
    "order": (
        "messages",
        _swapped,
        r"\.messages of .*: white_flag_order: block .* has white-flag index 2, the source says 3",
    ),
    "a message left out": (
        "messages",
        lambda rows: without(rows, last_row(rows, inclusion_state=2)),
        r"\.m\w+ of .*: (parent_missing|inclusion_root|not_in_cone|milestone_message_missing)",
    ),
    "a transaction said to have failed": (
        "messages",
        lambda rows: changed(rows, last_row(rows, inclusion_state=1), inclusion_state=0),
        r"\.milestones of .*: applied_root",
    ),
    "signature of a milestone": (
        "milestones",
        lambda rows: changed(rows, 3, payload=flipped(-3)),
        r"\.milestones of .*: milestone \d+: (milestone_signature|id_mismatch|milestone_message_missing)",
    ),
    "time of a milestone": (
        "milestones",
        lambda rows: changed(rows, 3, timestamp=lambda time: time + 1),
        r"\.milestones of .*: milestone_index \d+: timestamp is \d+, from the raw bytes follows \d+",
    ),
    "bytes of a consumed output": (
        "consumed_outputs",
        _other_bytes,
        r"\.\w+ of .*: (amount_mismatch|inputs_commitment|malformed|transaction_signature)",
    ),
    "an amount that an address received": (
        "ledger_updates",
        lambda rows: changed(rows, last_row(rows, is_spent=0), amount=lambda amount: amount + 1),
        r"\.ledger_updates of .*: amount is \d+, from the raw bytes follows \d+",
    ),
    "a tag left out": (
        "tags",
        lambda rows: without(rows, 1),
        r"\.tags of .*: the row .*tag [0-9a-f]+.* is missing, which follows from the raw bytes",
    ),
    "a parent invented": (
        "parents",
        lambda rows: changed(rows, 5, parent_id="00" * 32),
        r"\.parents of .*: the row .*parent_id 0{64}.* does not follow from the raw bytes",
    ),
}


def lie(world, tmp_path, table, edit, said) -> None:
    """Edit the first day of an export, sign it anew, and check that nothing but --deep sees it."""
    copy = shutil.copytree(world.export, tmp_path / "export")
    lying_export(copy, world.network, table, edit)
    place = open_place(str(copy))
    first = {"is_checked": lambda entry: entry.date == world.days[0].isoformat()}
    checked(world.settings, ExportCopy(place), deep=False, **first)
    with pytest.raises(PermalakeError, match=f"^{re.escape(world.network)}{said}"):
        checked(world.settings, ExportCopy(place), **first)


@pytest.mark.parametrize("told", LIES)
@pytest.mark.parametrize("name", ["stardust", "chrysalis"])
def test_what_a_dishonest_publisher_signs_is_named(name, told, request, tmp_path) -> None:
    lie(request.getfixturevalue(name), tmp_path, *LIES[told])


def _fewer_signatures(raw):
    return raw[:5] + bytes([1]) + raw[6 : 6 + 66] + raw[6 + 66 * raw[5] :]


BRIDGE_LIES = {
    "signature": (
        "quorum_state",
        lambda rows: changed(rows, 3, signed_vaa=flipped(20)),
        r"\.quorum_state of .*: row_key \S+: bad_signature: \d+ of \d+ signatures are valid",
    ),
    "quorum": (
        "quorum_state",
        lambda rows: changed(rows, 3, signed_vaa=_fewer_signatures),
        r"\.quorum_state of .*: row_key \S+: no_quorum: 1 valid signatures, \d are needed",
    ),
    "body": (
        "quorum_state",
        lambda rows: changed(rows, 3, signed_vaa=flipped(-1)),
        r"\.quorum_state of .*: row_key \S+: bad_signature",
    ),
    "key of a row": (
        "quorum_state",
        lambda rows: changed(rows, 3, row_key="2:" + "ab" * 32 + ":0000000000000009"),
        r"\.quorum_state of .*: row_key 2:(ab){32}:0{15}9: its bytes are the VAA of \S+",
    ),
    "amount": (
        "token_transfer_payload",
        lambda rows: changed(rows, 1, amount="7"),
        r"\.token_transfer_payload of .*: row_key \S+: amount is 7, from the raw bytes follows \d+",
    ),
    "a message left out": (
        "message_publication",
        lambda rows: without(rows, 1),
        r"\.message_publication of .*: the row row_key \S+ is missing",
    ),
}


@pytest.mark.parametrize("told", BRIDGE_LIES)
def test_what_a_dishonest_publisher_signs_of_wormhole_is_named(bridge, told, tmp_path) -> None:
    lie(bridge, tmp_path, *BRIDGE_LIES[told])


def test_another_guardian_set_than_the_known_one_is_named(bridge) -> None:
    """A publisher who names guardians of its own for a set that is known."""
    derivation = domain_of("wormhole").derivation_of(bridge.settings, "wormhole")
    manifest = {"verified": {"guardian_sets": {"0": {"guardians": ["0x" + "ab" * 20]}}}}
    day = RawDay(bridge.days[0], manifest, lambda _: None)
    with pytest.raises(UnderivedError, match="guardian set 0 is not the known one"):
        derivation.derive(day, lambda: None, None)
