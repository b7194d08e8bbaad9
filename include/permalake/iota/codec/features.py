"""Features and immutable features of Stardust outputs (TIP-18), all rows in lockstep."""

from __future__ import annotations

import numpy as np

from permalake.arrays.cursor import I64, Cursor, list_elements
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.outputs import ALIAS, BASIC, FOUNDRY, NFT, Outputs
from permalake.iota.codec.unlock_conditions import read_address

SENDER, ISSUER, METADATA, TAG = range(4)
MAX_FEATURES = 4
MAX_METADATA = 8192
MAX_TAG = 64

# By output type: bit set of the features allowed, mutable and immutable.
_MUTABLE, _IMMUTABLE = np.zeros(256, np.int64), np.zeros(256, np.int64)
for _kind, _mutable, _immutable in (
    (BASIC, 1 << SENDER | 1 << METADATA | 1 << TAG, 0),
    (ALIAS, 1 << SENDER | 1 << METADATA, 1 << ISSUER | 1 << METADATA),
    (FOUNDRY, 1 << METADATA, 1 << METADATA),
    (NFT, 1 << SENDER | 1 << METADATA | 1 << TAG, 1 << ISSUER | 1 << METADATA),
):
    _MUTABLE[_kind], _IMMUTABLE[_kind] = _mutable, _immutable


def read_features(part: Cursor, rows: I64, outputs: Outputs) -> None:
    """Read the features, then the immutable features, of ``part``'s rows (``rows`` of ``outputs``)."""
    kinds = outputs.kind[rows]
    _read(part, rows, outputs, _MUTABLE[kinds], immutable=False)
    with_chain = np.flatnonzero((kinds != BASIC) & part.fine)
    if len(with_chain):
        chained = part.at(with_chain)
        _read(chained, rows[with_chain], outputs, _IMMUTABLE[kinds[with_chain]], immutable=True)
        part.put(with_chain, chained)


def _read(part: Cursor, rows: I64, outputs: Outputs, allowed: I64, *, immutable: bool) -> None:
    seen = np.zeros(len(part), np.int64)
    for active, step in list_elements(part, MAX_FEATURES, Fault.FEATURE_COUNT):
        feature = step.u8()
        bit = np.left_shift(1, np.minimum(feature, 62))
        step.fail((bit & allowed[active]) == 0, Fault.FEATURE_KIND)
        step.fail(bit <= seen[active], Fault.FEATURE_ORDER)
        seen[active] |= bit
        _read_feature(step, feature, rows[active], outputs, immutable)


def _read_feature(step: Cursor, feature: I64, rows: I64, outputs: Outputs, immutable: bool) -> None:
    for feature_kind in range(TAG + 1):
        of_kind = np.flatnonzero((feature == feature_kind) & step.fine)
        if not len(of_kind):
            continue
        body, at = step.at(of_kind), rows[of_kind]
        if feature_kind in (SENDER, ISSUER):
            kind, value = read_address(body)
            (outputs.sender if feature_kind == SENDER else outputs.issuer).put(at, kind, value)
        elif feature_kind == METADATA:
            length = body.u16()
            body.fail((length == 0) | (length > MAX_METADATA), Fault.METADATA_LENGTH)
            start = body.take(length)
            if immutable:
                outputs.immutable_metadata_start[at], outputs.immutable_metadata_length[at] = start, length
            else:
                outputs.metadata_start[at], outputs.metadata_length[at] = start, length
        else:
            length = body.u8()
            body.fail((length == 0) | (length > MAX_TAG), Fault.TAG_LENGTH)
            outputs.tag_start[at], outputs.tag_length[at] = body.take(length), length
        step.put(of_kind, body)
