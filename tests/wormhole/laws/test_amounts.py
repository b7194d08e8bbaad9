"""The audit's own arithmetic of amount x price."""

from decimal import Decimal

import pytest

from permalake.wormhole.laws.value_laws import _times


@pytest.mark.parametrize(
    ("amount", "price", "value"),
    [
        ("0.00000001", "0.5", "0.00000000"),
        ("0.00000003", "0.5", "0.00000002"),
        ("0.00000003", "0.500000000000000001", "0.00000002"),
        ("0.00000001", "0.500000000000000001", "0.00000001"),
        ("12.5", "2", "25.00000000"),
        ("0", "3.1", "0.00000000"),
        ("999999999999999999999999999999", "1", "999999999999999999999999999999.00000000"),
        ("1000000000000000000000000000000", "1", None),
    ],
)
def test_half_even_to_eight_places_and_null_beyond(amount, price, value) -> None:
    assert _times(amount, Decimal(price)) == (None if value is None else Decimal(value))
