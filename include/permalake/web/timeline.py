"""A waterfall of steps as SVG: when each began, and how long it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from permalake.sanitize import shown

_WIDTH, _LABEL, _ROW, _BAR = 640, 150, 26, 14
_ROOM = _WIDTH - _LABEL - 80


@dataclass(frozen=True)
class TimelineBar:
    """A bar: seconds from the beginning of all, seconds that it took, and a class of the style sheet."""

    label: str
    begins: float
    seconds: float
    kind: str = "s0"


def waterfall(spans: Sequence[TimelineBar], *, title: str) -> Markup:
    """Return a row per span, from the first one's beginning to the last one's end."""
    length = max((span.begins + span.seconds for span in spans), default=0.0) or 1.0
    height = _ROW * len(spans) + 4
    out = [
        Markup('<svg class="waterfall" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            _WIDTH, height, shown(title)
        )
    ]
    for at, span in enumerate(spans):
        y = _ROW * at + 4
        x = _LABEL + span.begins / length * _ROOM
        width = max(span.seconds / length * _ROOM, 1.5)
        out.append(
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(
                _LABEL - 8, y + 12, shown(span.label)
            )
            + Markup('<rect class="{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="2"/>').format(
                span.kind, x, y, width, _BAR
            )
            + Markup('<text class="soft" x="{:.1f}" y="{}">{}</text>').format(
                x + width + 6, y + 12, duration(span.seconds)
            )
        )
    return Markup("").join([*out, Markup("</svg>")])


def duration(seconds: float) -> str:
    """Return seconds as people read them: ``0.3 s``, ``42 s``, ``3 min 05 s``, ``2 h 07 min``."""
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
