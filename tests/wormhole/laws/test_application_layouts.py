"""Messages of every application's layout, as the codec reads them, keep the laws of applications."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

from permalake.wormhole.codec.applications.batches import decode_applications
from permalake.wormhole.codec.bridge_payloads import bridge_kinds, decode_payloads
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.laws.application_laws import LAWS
from permalake.wormhole.reference import load_reference
from permalake_simulate.wormhole.encode_vaa import encode_vaa
from support.application_payloads import made_bodies
from support.audit_days import scope, violations

DAY = dt.date(2024, 3, 10)
NOON = int(dt.datetime(2024, 3, 10, 12, tzinfo=dt.UTC).timestamp())
DECODED = {
    "application": "application_messages",
    "moved": "application_transfers",
    "delivery": "relayer_deliveries",
}
CHECKED = {
    *("application_of_every_message", "application_transfers_have_application"),
    *("deliveries_have_application", "bridged_transfers_agree", "bridged_targets_agree"),
}


def test_messages_of_every_layout_keep_the_laws_of_applications() -> None:
    reference = load_reference()
    rows = {name: [] for name in WORMHOLE_TABLES}
    for body in made_bodies(NOON):
        vaas = decode_vaas(pa.array([encode_vaa(0, [], body)], pa.binary()))
        payloads = decode_payloads(vaas, bridge_kinds(vaas, reference.bridges))
        at = {"row_key": vaas.row_key()[0].as_py(), "date": DAY}
        rows["message_publication"].append(at)
        for row in payloads.transfers.to_pylist():
            rows["token_transfer_payload"].append({**row, **at})
        found = decode_applications(vaas, payloads, reference.contracts(), np.ones(1, bool))
        for name, table in DECODED.items():
            if (row := found[name].to_pylist()[0]) is not None:
                rows[table].append({**row, **at})
    layouts = {row["layout"] for row in rows["application_messages"]}
    assert {"gateway", "connect", "portico", "recipient", "ntt", "circle", "mayan_swift"} <= layouts
    assert sum(row["in_token_transfers"] for row in rows["application_transfers"]) == 4
    laws = [law for law in LAWS if law.name in CHECKED]
    assert len(laws) == len(CHECKED)
    assert violations(laws, scope(rows, WORMHOLE_TABLES)) == []
