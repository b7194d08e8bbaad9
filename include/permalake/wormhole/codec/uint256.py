"""Token amounts: decimal text of unsigned 256-bit integers, scaled exactly."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

MAX_DECIMALS = 8
"""The token bridge cuts amounts to at most 8 decimals before it sends them."""


def decimal_text(units: int, decimals: int) -> str:
    """Return ``units / 10^decimals``, exact and without trailing zeros."""
    whole, fraction = divmod(units, 10**decimals)
    digits = f"{fraction:0{decimals}d}".rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)


def scaled_amount(raw: pa.StringArray, decimals: pa.Array) -> pa.StringArray:
    """``raw / 10^min(decimals, 8)``, exact and without trailing zeros; null when either is null.

    ``raw`` is decimal text of any length. Works on the digits: as many zeros are appended as make eight
    decimals, then the text is cut before the last eight.
    """
    kept = pc.min_element_wise(pc.cast(decimals, pa.int32()), MAX_DECIMALS, skip_nulls=False)
    zeros = pa.array(["0" * missing for missing in range(MAX_DECIMALS, -1, -1)]).take(kept)
    digits = pc.utf8_lpad(pc.binary_join_element_wise(raw, zeros, ""), width=MAX_DECIMALS + 1, padding="0")
    whole = pc.utf8_slice_codeunits(digits, 0, -MAX_DECIMALS)
    fraction = pc.utf8_rtrim(pc.utf8_slice_codeunits(digits, -MAX_DECIMALS), characters="0")
    return pc.if_else(pc.equal(fraction, ""), whole, pc.binary_join_element_wise(whole, fraction, "."))
