"""Applications of whole batches: as if each VAA were decoded alone."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from permalake.wormhole.codec.applications.batches import decode_applications
from permalake.wormhole.codec.applications.decode import decode_application
from permalake.wormhole.codec.applications.transfers import transfer_of
from permalake.wormhole.codec.bridge_payloads import bridge_kinds, decode_payloads
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.contracts.application_tables import (
    APPLICATION_MESSAGES,
    APPLICATION_TRANSFERS,
    RELAYER_DELIVERIES,
)
from permalake.wormhole.reference import load_reference
from permalake_simulate.wormhole.encode_vaa import encode_body, encode_vaa
from support.application_payloads import made_messages
from support.vaa_data import NETWORKS, raw_vaas, reference_directory

TYPES = {
    name: pa.struct([field for field in table.arrow if field.name not in {"row_key", "date"}])
    for name, table in (
        ("application", APPLICATION_MESSAGES),
        ("moved", APPLICATION_TRANSFERS),
        ("delivery", RELAYER_DELIVERIES),
    )
}


def columns(raw, reference, select=None):
    vaas = decode_vaas(raw)
    chosen = vaas.has_body if select is None else select
    payloads = decode_payloads(vaas, bridge_kinds(vaas, reference.bridges), select=chosen)
    found = decode_applications(vaas, payloads, reference.contracts(), chosen)
    assert {name: column.type for name, column in found.items()} == TYPES
    return vaas, {name: column.to_pylist() for name, column in found.items()}


def agrees(raw, reference):
    """Compare a batch with its VAAs one by one; return the messages' kinds."""
    vaas, found = columns(raw, reference)
    publication = vaas.publication()
    for at in range(len(vaas)):
        chain, address = (publication[name][at].as_py() for name in ("emitter_chain", "emitter_address"))
        payload = publication["payload"][at].as_py()
        message = decode_application(chain, bytes.fromhex(address), payload, reference.contracts())
        row, inner = found["application"][at], message.inner or message
        carrier = message.app_id if message.inner else message.carrier
        assert (row["app_id"], row["carrier_app_id"]) == (inner.app_id, carrier)
        assert (row["kind"], row["layout"], row["is_listed"]) == (inner.kind, inner.layout, inner.is_listed)
        assert (json.loads(row["fields"]) if row["fields"] else {}) == inner.fields
        moved, told = found["moved"][at], transfer_of(message, chain, payload)
        assert (moved is None) == (told is None)
        assert told is None or {name: moved[name] for name in told} == told
        assert (found["delivery"][at] is None) == (message.layout != "relayer")
    return Counter((row["app_id"], row["kind"]) for row in found["application"])


@pytest.mark.parametrize("network", NETWORKS)
def test_a_batch_is_decoded_as_its_vaas_one_by_one(network) -> None:
    counts = agrees(raw_vaas(network), load_reference(reference_directory(network)))
    assert sum(counts.values()) == NETWORKS[network]


def test_messages_of_every_application_in_one_batch() -> None:
    reference = load_reference()
    messages = made_messages(reference.contracts())
    assert {layout for layout, *_ in messages} == {one.layout for one in reference.contracts().values()} | {
        "ntt",
        "query_response",
    }
    raw = [
        encode_vaa(
            0,
            [],
            encode_body(
                timestamp=0,
                nonce=0,
                emitter_chain=chain,
                emitter_address=emitter,
                sequence=at,
                consistency_level=1,
                payload=payload,
            ),
        )
        for at, (_, chain, emitter, payload) in enumerate(messages)
    ]
    cut = [one[: len(one) - 1] for one in raw]
    counts = agrees(pa.array(raw + cut, pa.binary()), reference)
    whole = agrees(pa.array(raw, pa.binary()), reference)
    assert whole["UNKNOWN", "unknown"] == 0
    assert counts["UNKNOWN", "unknown"] > 0


def test_rows_that_are_not_selected_have_no_application() -> None:
    raw = raw_vaas("mainnet")
    chosen = np.arange(len(raw)) % 2 == 0
    _, found = columns(raw, load_reference(), chosen)
    assert [row is not None for row in found["application"]] == chosen.tolist()
    assert not any(found[name][at] for name in ("moved", "delivery") for at in range(1, len(raw), 2))


def test_an_empty_batch() -> None:
    _, found = columns(pa.array([], pa.binary()), load_reference())
    assert found == {"application": [], "moved": [], "delivery": []}
