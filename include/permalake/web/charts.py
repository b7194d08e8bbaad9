"""Charts as SVG without scripts and inline styles; colours are classes of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

COLOURS = 8
_WIDTH, _HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 8, 10, 26
_TICKS = 4


def bars(
    days: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    label: Callable[[float], str],
    parts: bool,
    title: str,
) -> Markup:
    """Return bars by day: stacked where the series are parts of a whole, else beside each other."""
    top = _round_up(_highest(series, len(days), parts=parts))
    scale = (_HEIGHT - _TOP - _BOTTOM) / top
    out = [_opened("bars", f"0 0 {_WIDTH} {_HEIGHT}", title), *_axis(top, label)]
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(days), 1)
    width = min(step * 0.8, 48.0)
    each = width if parts else width / max(len(series), 1)
    for at, day in enumerate(days):
        left = _LEFT + step * at + (step - width) / 2
        base = float(_HEIGHT - _BOTTOM)
        for number, (name, values) in enumerate(series.items()):
            value = values[at] or 0.0
            height = max(value, 0) * scale
            x = left if parts else left + each * number
            base = base - height if parts else _HEIGHT - _BOTTOM - height
            out.append(
                Markup('<rect class="s{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">').format(
                    number % COLOURS, x, base, max(each - 0.5, 0.5), height
                )
                + Markup("<title>{}, {}: {}</title></rect>").format(day, name, label(value))
            )
    out.append(_dates(days, step))
    return Markup("").join([*out, Markup("</svg>")])


def _highest(series: Mapping[str, Sequence[float | None]], days: int, *, parts: bool) -> float:
    found = [[max(values[at] or 0, 0) for values in series.values()] for at in range(days)]
    return max((sum(one) if parts else max(one) for one in found if one), default=0) or 1.0


def _round_up(value: float) -> float:
    """Return the least top of an axis whose ticks are round numbers."""
    step = value / _TICKS
    power: float = 10.0 ** math.floor(math.log10(step))
    return next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= step * 0.9999) * power * _TICKS


def _opened(kind: str, box: str, title: str) -> Markup:
    return Markup('<svg class="{}" viewBox="{}" role="img" aria-label="{}">').format(kind, box, title)


def _axis(top: float, label: Callable[[float], str]) -> list[Markup]:
    lines = []
    for tick in range(_TICKS + 1):
        y = _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * tick / _TICKS
        lines.append(
            Markup('<line class="axis" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
                _LEFT, _WIDTH - _RIGHT, y, y
            )
            + Markup('<text class="soft" x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
                _LEFT - 6, y + 4, label(top * tick / _TICKS)
            )
        )
    return lines


def _dates(days: Sequence[str], step: float) -> Markup:
    shown = {0, len(days) - 1} if len(days) > 1 else {0}
    return Markup("").join(
        Markup('<text class="soft" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
            _LEFT + step * (at + 0.5) if len(days) == 1 else (_LEFT if at == 0 else _WIDTH - _RIGHT),
            _HEIGHT - 8,
            "middle" if len(days) == 1 else ("start" if at == 0 else "end"),
            days[at],
        )
        for at in sorted(shown)
        if days
    )


@dataclass(frozen=True)
class Flow:
    """A flow from a source to a target."""

    source: str
    target: str
    value: float


def sankey(flows: Sequence[Flow], *, label: Callable[[float], str], title: str) -> Markup:
    """Return sources on the left and targets on the right, joined by ribbons as wide as their flow."""
    sources = _ranked((flow.source, flow.value) for flow in flows)
    targets = _ranked((flow.target, flow.value) for flow in flows)
    height = max(len(sources), len(targets)) * 46 + 20
    scale = _scale(sources, targets, height)
    left, right = _places(sources, scale), _places(targets, scale)
    used_left, used_right = dict(left), dict(right)
    colour = {name: at % COLOURS for at, name in enumerate(sources)}
    out = [_opened("sankey", f"20 0 480 {height}", title)]
    for flow in sorted(
        flows, key=lambda one: (list(sources).index(one.source), list(targets).index(one.target))
    ):
        thick = max(flow.value * scale, 0.75)
        y0, y1 = used_left[flow.source], used_right[flow.target]
        used_left[flow.source] += flow.value * scale
        used_right[flow.target] += flow.value * scale
        out.append(
            Markup(
                '<path class="ribbon s{}" d="M120 {:.1f}C260 {:.1f} 260 {:.1f} 400 {:.1f}L400 {:.1f}'
                'C260 {:.1f} 260 {:.1f} 120 {:.1f}Z"><title>{} to {}: {}</title></path>'
            ).format(
                colour[flow.source],
                *(y0, y0, y1, y1, y1 + thick, y1 + thick, y0 + thick, y0 + thick),
                *(flow.source, flow.target, label(flow.value)),
            )
        )
    for names, places, x, anchor in ((sources, left, 110, "end"), (targets, right, 400, "start")):
        for name, value in names.items():
            y = places[name]
            tall = max(value * scale, 1.5)
            kind = f"s{colour[name]}" if anchor == "end" else "s7"
            text_x = 102 if anchor == "end" else 418
            out.append(
                Markup('<rect class="{}" x="{}" y="{:.1f}" width="10" height="{:.1f}"/>').format(
                    kind, x, y, tall
                )
                + Markup('<text x="{}" y="{:.1f}" text-anchor="{}">{}</text>').format(
                    text_x, y + tall / 2 - 2, anchor, name
                )
                + Markup('<text class="soft" x="{}" y="{:.1f}" text-anchor="{}">{}</text>').format(
                    text_x, y + tall / 2 + 11, anchor, label(value)
                )
            )
    return Markup("").join([*out, Markup("</svg>")])


def _ranked(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, value in pairs:
        sums[name] = sums.get(name, 0.0) + value
    return dict(sorted(sums.items(), key=lambda pair: -pair[1]))


_GAP = 30.0


def _scale(sources: Mapping[str, float], targets: Mapping[str, float], height: int) -> float:
    room = height - 20 - _GAP * max(len(sources), len(targets))
    return room / (sum(sources.values()) or 1.0)


def _places(names: Mapping[str, float], scale: float) -> dict[str, float]:
    """Return the top of each name, with room for two lines of text between two of them."""
    places, y = {}, 16.0
    for name, value in names.items():
        places[name] = y
        y += value * scale + _GAP
    return places
