"""Responses to cross-chain queries, recognized by their layout.

Guardians sign them off-chain, with a prefix of their own; a VAA carries one only where a contract publishes
it. Source: wormhole-foundation/wormhole, ``whitepapers/0013_ccq.md``.
"""

from __future__ import annotations

from permalake.wormhole.codec.payload_fields import Fields
from permalake.wormhole.codec.payload_reader import LayoutError, PayloadReader

QUERY_PREFIX = b"\x01\x00\x00"
"""Version 1, and chain 0: a request that did not come over a chain."""
_SIGNATURE_SIZE = 65


def read_query_response(payload: bytes) -> Fields:
    """Return the request's nonce, and chain and query type of each response.

    Raises LayoutError if the bytes are not exactly one response.
    """
    reader = PayloadReader(payload)
    reader.expect(QUERY_PREFIX)
    reader.raw(_SIGNATURE_SIZE)
    request = PayloadReader(reader.raw(reader.number(4)))
    request.expect(b"\x01")
    nonce, queries = request.number(4), request.number(1)
    count = reader.number(1)
    if count == 0 or count != queries:
        raise LayoutError(f"{count} responses to {queries} queries")
    responses = reader.repeated(count, lambda: _response(reader))
    reader.end()
    return {"nonce": nonce, "responses": responses}


def _response(reader: PayloadReader) -> Fields:
    fields: Fields = {"chain": reader.number(2), "query_type": reader.number(1)}
    reader.raw(reader.number(4))
    return fields
