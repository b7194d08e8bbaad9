from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from permalake.arrays.decimal_text import to_decimal_text
from permalake.wormhole.codec.uint256 import scaled_amount

EDGES = [0, 1, 9, 10, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**128, 2**255, 2**256 - 1]
UINTS = st.lists(st.sampled_from(EDGES) | st.integers(0, 2**256 - 1) | st.integers(0, 2**64))
EXACT = Context(prec=100)


@given(UINTS)
def test_decimal_text_is_exact(values) -> None:
    words = b"".join(value.to_bytes(32, "big") for value in values)
    found = to_decimal_text(np.frombuffer(words, np.uint8).reshape(-1, 32))
    assert found.to_pylist() == [str(value) for value in values]


@given(
    st.lists(st.tuples(st.sampled_from(EDGES) | st.integers(0, 2**256 - 1), st.integers(0, 255)), min_size=1)
)
def test_amounts_are_exact_and_have_no_trailing_zeros(pairs) -> None:
    raw = pa.array([str(value) for value, _ in pairs])
    found = scaled_amount(raw, pa.array([decimals for _, decimals in pairs], pa.int32()))
    for (value, decimals), text in zip(pairs, found.to_pylist(), strict=True):
        assert EXACT.scaleb(Decimal(text), min(decimals, 8)) == value
        assert "." not in text or not text.endswith(("0", "."))
        assert text == "0" or text.startswith("0.") or not text.startswith("0")


def test_unknown_decimals_make_no_amount() -> None:
    found = scaled_amount(pa.array(["5", None, "7"]), pa.array([None, 8, 0], pa.int32()))
    assert found.to_pylist() == [None, None, "7"]
    assert scaled_amount(pa.array([], pa.string()), pa.array([], pa.int32())).to_pylist() == []
