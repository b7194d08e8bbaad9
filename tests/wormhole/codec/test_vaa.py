from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from permalake.wormhole.codec.vaa import ERRORS, decode_vaas
from permalake_simulate.wormhole.encode_vaa import encode_body, encode_vaa
from support.vaa_data import NETWORKS, expectations, raw_vaas, synthetic_inputs, synthetic_rows

SIGNATURE = bytes(range(65))
BODY = encode_body(
    timestamp=1_700_000_000,
    nonce=7,
    emitter_chain=2,
    emitter_address=bytes(31) + b"\x05",
    sequence=42,
    consistency_level=1,
    payload=b"hello",
)
GOOD = encode_vaa(4, [(0, SIGNATURE), (3, SIGNATURE)], BODY)


def decode(*raw):
    return decode_vaas(pa.array(raw, pa.binary()))


@pytest.mark.parametrize("network", NETWORKS)
def test_real_vaas_decode_as_an_independent_decoder_reads_them(network) -> None:
    vaas = decode_vaas(raw_vaas(network))
    assert not vaas.error.any()
    keys, digests, payloads = vaas.row_key(), vaas.digest_hex(), vaas.payload()
    for i, row in enumerate(expectations(network)):
        own = slice(vaas.signature_offset[i], vaas.signature_offset[i + 1])
        assert keys[i].as_py() == row["row_key"]
        assert digests[i].as_py() == row["digest"]
        assert payloads[i].as_py().hex() == row["payload"]
        assert vaas.guardian_index[own].tolist() == row["signers"]
        for field in ("guardian_set_index", "timestamp", "nonce", "emitter_chain", "consistency_level"):
            assert getattr(vaas, field)[i] == row[field], field
        assert int(vaas.sequence[i]) == row["sequence"]
        assert vaas.emitter_address[i].tobytes().hex() == row["emitter_address"]


def test_raw_vaas_come_back_byte_for_byte() -> None:
    raw = raw_vaas("mainnet")
    vaas = decode_vaas(raw)
    assert vaas.slices(vaas.start, vaas.length).equals(raw)
    assert vaas.signature.shape == (vaas.signature_offset[-1], 65)
    first = raw[0].as_py()
    assert vaas.signature[0].tobytes() == first[7:72]


def test_publication_has_the_rows_of_the_synthetic_world() -> None:
    vaas = decode_vaas(synthetic_inputs())
    rows = {}
    for row in vaas.publication().to_pylist():
        row["payload"] = row["payload"].hex() if row["payload"] is not None else None
        row["timestamp"] = row["timestamp"] and row["timestamp"].strftime("%Y-%m-%dT%H:%M:%SZ")
        row["sequence"] = row["sequence"] is not None and int(row["sequence"])
        rows[row["row_key"], row["digest"]] = row
    for wanted in synthetic_rows("message_publication"):
        found = rows[wanted["row_key"], wanted["digest"]]
        assert found == {name: wanted[name] for name in found}


def test_row_keys_pad_the_sequence_in_v2_only() -> None:
    long = 2**64 - 1
    bodies = [
        encode_body(
            timestamp=0,
            nonce=0,
            emitter_chain=65535,
            emitter_address=b"\xab" * 32,
            sequence=sequence,
            consistency_level=0,
            payload=b"",
        )
        for sequence in (0, 10**15, 10**16, long)
    ]
    vaas = decode(*(encode_vaa(0, [], body) for body in bodies))
    prefix = "65535:" + "ab" * 32 + ":"
    assert vaas.row_key().to_pylist() == [
        f"{prefix}{sequence:016d}" for sequence in (0, 10**15, 10**16, long)
    ]
    assert vaas.payload().to_pylist() == [b""] * 4
    assert int(vaas.publication()["sequence"][3].as_py()) == long


@pytest.mark.parametrize(
    ("bad", "reason", "has_body"),
    [
        (b"", "empty", False),
        (None, "empty", False),
        (b"\x02" + GOOD[1:], "version is not 1", False),
        (b"\x00" + GOOD[1:], "version is not 1", False),
        (b"\x01", "shorter than its header", False),
        (GOOD[:5], "shorter than its header", False),
        (GOOD[:6], "shorter than its signatures and body", False),
        (GOOD[: 6 + 2 * 66 + 50], "shorter than its signatures and body", False),
        (GOOD[:5] + b"\xff" + GOOD[6:], "shorter than its signatures and body", False),
        (encode_vaa(4, [(3, SIGNATURE), (0, SIGNATURE)], BODY), "guardian indices out of order", True),
        (
            encode_vaa(4, [(1, SIGNATURE), (2, SIGNATURE), (1, SIGNATURE)], BODY),
            "guardian indices out of order",
            True,
        ),
    ],
)
def test_a_malformed_row_says_why_and_leaves_its_neighbours_alone(bad, reason, has_body) -> None:
    vaas = decode(GOOD, bad, GOOD, bad)
    assert [ERRORS[code] for code in vaas.error] == ["", reason, "", reason]
    assert vaas.has_body.tolist() == [True, has_body, True, has_body]
    assert vaas.signature_offset.tolist() == [0, 2, 2, 4, 4]
    assert vaas.guardian_index.tolist() == [0, 3, 0, 3]
    keys = vaas.row_key()
    assert keys[0] == keys[2]
    assert (keys[1].as_py() == keys[0].as_py()) == has_body
    assert (vaas.digest_hex()[1].as_py() is None) != has_body
    assert vaas.payload()[2].as_py() == b"hello"
    assert vaas.slices(vaas.start, vaas.length)[1].as_py() == (bad or b"")


def test_equal_neighbours_are_left_to_verification() -> None:
    vaas = decode(encode_vaa(4, [(1, SIGNATURE), (1, SIGNATURE)], BODY))
    assert vaas.error.tolist() == [0]
    assert vaas.guardian_index.tolist() == [1, 1]


def test_order_is_judged_within_a_vaa() -> None:
    vaas = decode(encode_vaa(4, [(9, SIGNATURE)], BODY), encode_vaa(4, [], BODY), GOOD)
    assert vaas.error.tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_slices_chunks_and_wide_offsets_are_read_alike(kind) -> None:
    column = pa.chunked_array([[b"junk", GOOD], [], [None, GOOD, b"tail"]], kind)
    vaas = decode_vaas(column.slice(1, 3))
    assert vaas.error.tolist() == [0, 1, 0]
    assert vaas.digest_hex()[0] == vaas.digest_hex()[2]
    sliced = decode_vaas(pa.array([b"junk", GOOD, b"tail"], kind).slice(1, 1))
    assert sliced.slices(sliced.start, sliced.length).to_pylist() == [GOOD]


def test_no_rows_make_no_rows() -> None:
    vaas = decode()
    assert len(vaas) == 0
    assert vaas.publication().num_rows == 0


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=300) | st.binary(max_size=80).map(lambda b: b"\x01\0\0\0\4\0" + b)))
def test_hostile_bytes_never_raise(rows) -> None:
    vaas = decode(*rows)
    assert len(vaas) == len(rows)
    assert vaas.publication().num_rows == len(rows)
    assert np.array_equal(vaas.has_body, (vaas.error == 0) | (vaas.error == len(ERRORS) - 1))


@settings(max_examples=100)
@given(st.binary(min_size=1), st.integers(0, len(GOOD) - 1))
def test_a_good_vaa_survives_hostile_neighbours(junk, cut) -> None:
    vaas = decode(junk, GOOD, GOOD[:cut], GOOD, junk)
    good = vaas.digest_hex()
    assert vaas.error[1] == vaas.error[3] == 0
    assert good[1].as_py() == good[3].as_py() == decode(GOOD).digest_hex()[0].as_py()
