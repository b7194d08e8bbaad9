"""The lineage of a day as SVG: boxes from top to bottom, each with what came from the one above."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from permalake.sanitize import shown

_WIDTH, _LINE, _GAP, _PAD = 480, 17, 34, 9
_LETTERS = 66
"""Letters of a line, so that it fits a box."""


@dataclass(frozen=True)
class Stage:
    """A box: a title, what it holds, and the work that led to it (none for the first)."""

    title: str
    text: str = ""
    work: str = ""


def lineage(stages: Sequence[Stage], *, title: str) -> Markup:
    """Return the stages joined by arrows."""
    y = 2.0
    parts = []
    for stage in stages:
        if stage.work:
            parts.append(_arrow(y, stage.work))
            y += _GAP
        box, height = _box(y, stage)
        parts.append(box)
        y += height
    opened = Markup('<svg class="lineage" viewBox="0 0 {} {:.0f}" role="img" aria-label="{}">').format(
        _WIDTH, y + 2, shown(title)
    )
    return Markup("").join([opened, *parts, Markup("</svg>")])


def _box(y: float, stage: Stage) -> tuple[Markup, float]:
    lines = textwrap.wrap(shown(stage.text), _LETTERS)
    height = 2 * _PAD + _LINE * (1 + len(lines))
    out = Markup('<rect class="box" x="1" y="{:.0f}" width="{}" height="{}" rx="8"/>').format(
        y, _WIDTH - 2, height
    )
    out += Markup('<text class="strong" x="14" y="{:.0f}">{}</text>').format(
        y + _PAD + 12, shown(stage.title)
    )
    for at, line in enumerate(lines, start=1):
        out += Markup('<text class="soft" x="14" y="{:.0f}">{}</text>').format(
            y + _PAD + 12 + _LINE * at, line
        )
    return out, height


def _arrow(y: float, work: str) -> Markup:
    tip = y + _GAP - 3
    return Markup(
        '<path class="arrow" d="M40 {:.0f}V{:.0f}M35 {:.0f}L40 {:.0f}L45 {:.0f}"/>'
        '<text x="56" y="{:.0f}">{}</text>'
    ).format(y + 3, tip, tip - 6, tip, tip - 6, y + _GAP / 2 + 4, shown(work))
