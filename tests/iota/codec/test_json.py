"""Node JSON of bytes, and bytes of node JSON: exact inverses for both protocols."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from permalake.iota.codec.encode import (
    pack_block,
    pack_milestone,
    pack_milestone_essence,
    pack_tagged_data,
    pack_transaction,
)
from permalake.iota.codec.encode_outputs import Output, pack_output
from permalake.iota.codec.faults import DecodeError, Fault, MalformedJsonError
from permalake.iota.codec.from_json import pack_json_block, pack_json_milestone, pack_json_output
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.codec.outputs import TREASURY
from permalake.iota.codec.to_json import block_json, milestone_payload_json, output_json, receipts_json
from support import iota_objects
from support.iota_json import as_nodes_write
from support.iota_strategies import PROTOCOLS, milestones, outputs, parents, tagged_data, transactions, u64

LEAN = settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


@protocols
def test_bytes_of_the_json_of_all_test_data_are_the_bytes(protocol) -> None:
    for raw in iota_objects.blocks(protocol):
        assert pack_json_block(block_json(raw, protocol), protocol) == raw
    for raw in iota_objects.milestones(protocol):
        assert pack_json_milestone(milestone_payload_json(raw, protocol), protocol) == raw
    for raw in iota_objects.outputs(protocol):
        assert pack_json_output(output_json(raw, protocol)) == raw


@protocols
def test_json_is_that_of_the_nodes_where_the_data_has_both(protocol) -> None:
    compared = 0
    for names, raw_field, body_field, as_json in (
        (iota_objects.BLOCKS[protocol], "raw", "json", block_json),
        (iota_objects.MILESTONES[protocol], "rawPayload", "payload", milestone_payload_json),
        (iota_objects.OUTPUTS[protocol], "rawOutput", "output", output_json),
    ):
        for raw, body in iota_objects.bodies(names, raw_field, body_field):
            assert as_json(raw, protocol) == as_nodes_write(body)
            compared += 1
    assert compared > 100


@protocols
@given(data=st.data())
@LEAN
def test_bytes_of_the_json_of_any_block_are_the_bytes(protocol, data) -> None:
    kind = data.draw(st.sampled_from(["none", "tagged", "transaction", "milestone"]))
    own_parents, payload = data.draw(parents), b""
    if kind == "tagged":
        payload = pack_tagged_data(data.draw(tagged_data(protocol)), protocol)
    elif kind == "transaction":
        payload = pack_transaction(data.draw(transactions(protocol)), protocol)
    elif kind == "milestone":
        draft, signed = data.draw(milestones(protocol))
        own_parents = draft.parents
        payload = pack_milestone(pack_milestone_essence(draft, protocol), signed, protocol)
        assert pack_json_milestone(milestone_payload_json(payload, protocol), protocol) == payload
    network_id = data.draw(u64) if protocol == "chrysalis" else 0
    raw = pack_block(own_parents, payload, protocol, nonce=data.draw(u64), network_id=network_id)
    assert pack_json_block(block_json(raw, protocol), protocol) == raw


@protocols
@given(data=st.data())
@LEAN
def test_bytes_of_the_json_of_any_output_are_the_bytes(protocol, data) -> None:
    treasury = st.builds(Output, st.just(TREASURY), st.integers(0, 2_779_530_283_277_761))
    raw = pack_output(data.draw(outputs(protocol) | treasury))
    assert pack_json_output(output_json(raw, protocol)) == raw


@protocols
def test_receipts_are_those_of_the_milestones_that_have_one(protocol) -> None:
    payloads = iota_objects.milestones(protocol)
    having = [raw for raw in payloads if decode_milestone(raw, protocol).receipt]
    found = receipts_json(payloads, protocol)
    assert [one["milestoneIndex"] for one in found] == [
        decode_milestone(raw, protocol).index for raw in having
    ]
    for one, raw in zip(found, having, strict=True):
        assert one["receipt"] == milestone_payload_json(raw, protocol)["receipt"]
    assert bool(having) is (protocol == "chrysalis")


def test_a_chrysalis_message_and_a_stardust_block_without_payload() -> None:
    parent = bytes(range(32))
    assert block_json(pack_block([parent], b"", "chrysalis", nonce=2**64 - 1, network_id=7), "chrysalis") == {
        "networkId": "7",
        "parentMessageIds": [parent.hex()],
        "payload": None,
        "nonce": "18446744073709551615",
    }
    assert block_json(pack_block([parent], b"", "stardust", nonce=2**64 - 1), "stardust") == {
        "protocolVersion": 2,
        "parents": [f"0x{parent.hex()}"],
        "nonce": "18446744073709551615",
    }


@protocols
def test_malformed_bytes_name_the_rule_that_they_break(protocol) -> None:
    for as_json in (block_json, milestone_payload_json, output_json):
        with pytest.raises(DecodeError) as caught:
            as_json(b"", protocol)
        assert caught.value.fault is Fault.TRUNCATED
    with pytest.raises(DecodeError, match="trailing bytes"):
        output_json(iota_objects.outputs(protocol)[0] + b"\0", protocol)
    with pytest.raises(DecodeError):
        receipts_json([b"\xff" * 40], protocol)


@pytest.mark.parametrize(
    "body", [None, 7, "text", [], {}, {"parents": 3, "nonce": "1"}, {"parents": [], "nonce": "-1"}]
)
def test_json_of_another_shape_is_malformed(body) -> None:
    for pack in (pack_json_block, pack_json_milestone, pack_json_output):
        with pytest.raises(
            MalformedJsonError, match=r"^(block|milestone|output) in JSON is malformed \(\w+: .*\)$"
        ):
            pack(body)
