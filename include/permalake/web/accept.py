"""The media type that a client likes best, by its Accept header (RFC 9110, section 12.5.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from starlette.requests import Request

_EVERYTHING = "*/*"


def preferred(request: Request, offers: Sequence[str]) -> str:
    """Return the media type of ``offers`` with the highest weight.

    Of equal weights the one that is named more exactly counts, then the one that is named first, then the
    one that is offered first. The first offer is also the answer to a header that is missing or accepts none.
    """
    return _preferred(",".join(request.headers.getlist("accept")) or _EVERYTHING, tuple(offers))


@lru_cache(1024)
def _preferred(accept: str, offers: tuple[str, ...]) -> str:
    ranges = _ranges(accept)

    def rank(offer: str) -> tuple[float, int, int]:
        matching = [
            (weighed, exactness) for exactness, name in _names(offer) if (weighed := ranges.get(name))
        ]
        if not matching:
            return 0.0, 0, 0
        (weight, place), exactness = matching[0]
        return weight, exactness, -place

    best = max(offers, key=rank)
    return best if rank(best)[0] > 0 else offers[0]


def _names(offer: str) -> tuple[tuple[int, str], ...]:
    """Return the ranges that a media type lies in, the most exact first."""
    return (2, offer), (1, f"{offer.partition('/')[0]}/*"), (0, _EVERYTHING)


def _ranges(header: str) -> dict[str, tuple[float, int]]:
    """Return weight and place of each range; parameters other than ``q`` do not matter here."""
    ranges: dict[str, tuple[float, int]] = {}
    for place, part in enumerate(header.split(",")):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weights = [text[2:] for text in parameters if text.startswith("q=")]
        ranges.setdefault(name, (_weight(weights[0]) if weights else 1.0, place))
    return ranges


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return min(max(weight, 0.0), 1.0) if math.isfinite(weight) else 1.0
