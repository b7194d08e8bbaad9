"""Every rule about blocks, broken once: refused, and for that reason."""

from __future__ import annotations

import pytest

from support.block_fault_cases import BLOCK_CASES
from support.iota_specimens import fault_of


@pytest.mark.parametrize(("protocol", "fault", "raw"), BLOCK_CASES)
def test_blocks(protocol, fault, raw) -> None:
    assert fault_of(raw, protocol) == fault
