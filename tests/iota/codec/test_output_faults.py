"""Every rule about outputs, broken once: refused for that reason, alone and inside a block."""

from __future__ import annotations

import pyarrow as pa
import pytest

from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.encode import pack_block, pack_transaction
from permalake.iota.codec.encode_outputs import pack_output
from permalake.iota.codec.faults import Fault
from support.iota_specimens import A, fault_of, transaction
from support.output_fault_cases import OUTPUT_CASES


@pytest.mark.parametrize(("protocol", "fault", "output"), OUTPUT_CASES)
def test_outputs(protocol, fault, output) -> None:
    raw = output if isinstance(output, bytes) else pack_output(output)
    columns = decode_outputs(pa.array([raw], pa.binary()), protocol)
    assert Fault(int(columns.error[0])) == fault
    own = pack_output(transaction(protocol).outputs[0])
    payload = pack_transaction(transaction(protocol), protocol).replace(own, raw)
    assert fault_of(pack_block([A], payload, protocol), protocol) == fault
