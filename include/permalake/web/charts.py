"""Charts as SVG without scripts and inline styles; colours are classes of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

COLOURS = 8
COLUMNS = 90
"""Columns of a chart; more days are gathered, so that a page of charts stays small."""
_WIDTH, _HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 8, 10, 26
_TICKS = 4
_FLOOR = _HEIGHT - _BOTTOM
_ROOM = _FLOOR - _TOP
_DATE_WIDTH = 130
"""Room of a date below a bar, in the letters of a phone."""

Label = Callable[[float], str]


@dataclass(frozen=True)
class _Column:
    """A day, or the mean of several, with a value for each series; None where no day has one."""

    text: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class _Axis:
    """A vertical axis whose ticks are ``bottom`` to ``top`` times ``step``; zero is one of them."""

    step: float
    bottom: int
    top: int

    def y(self, value: float) -> float:
        """Return where a value stands, from the top of the picture."""
        return _FLOOR - _ROOM * (value / self.step - self.bottom) / (self.top - self.bottom)


def bars(
    days: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    label: Label,
    parts: bool,
    title: str,
    whole: bool = False,
    tick: Label | None = None,
) -> Markup:
    """Return bars by day: stacked where the series are parts of a whole, else beside each other.

    ``days`` follow each other without a gap; a day without a figure has None. More than :data:`COLUMNS` days
    are gathered into means of as many days each. Parts are not negative; other series may be, as differences
    to a ledger whose beginning is not known. ``whole``: the axis has integers alone. ``tick``: the label of
    an axis, which has little room on a phone; without it the ``label``, which a bar's tooltip has.
    """
    columns = _columns(days, list(series.values()))
    axis = _axis(columns, parts=parts, whole=whole)
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(columns), 1)
    width = min(step * 0.8, 48.0)
    each = width if parts else width / max(len(series), 1)
    out = [_opened("bars", f"0 0 {_WIDTH} {_HEIGHT}", title), *_ticks(axis, tick or label)]
    for number in range(len(series)):
        lines = []
        for at, column in enumerate(columns):
            below = sum(value or 0.0 for value in column.values[:number]) if parts else 0.0
            left = _LEFT + step * at + (step - width) / 2 + (0 if parts else each * number)
            if value := column.values[number]:
                lines.append(f"M{left + each / 2:.1f} {axis.y(below):.1f}V{axis.y(below + value):.1f}")
        out.append(
            Markup('<path class="l{}" stroke-width="{:.1f}" d="{}"/>').format(
                number % COLOURS, max(each - 0.5, 0.5), "".join(lines)
            )
        )
    for at, column in enumerate(columns):
        labels_text = "\n".join(
            f"{name}: {'no figure' if value is None else label(value)}"
            for name, value in zip(series, column.values, strict=True)
        )
        out.append(
            Markup('<path class="day" d="M{:.1f} {}h{:.1f}v{}H{:.1f}z"><title>{}\n{}</title></path>').format(
                _LEFT + step * at, _TOP, step, _ROOM, _LEFT + step * at, column.text, labels_text
            )
        )
    out.append(_dates(days, len(columns), step))
    return Markup("").join([*out, Markup("</svg>")])


def _columns(days: Sequence[str], series: Sequence[Sequence[float | None]]) -> list[_Column]:
    each = math.ceil(len(days) / COLUMNS) or 1
    return [_column(days, series, first, min(first + each, len(days))) for first in range(0, len(days), each)]


def _column(days: Sequence[str], series: Sequence[Sequence[float | None]], first: int, end: int) -> _Column:
    count = end - first
    text = days[first] if count == 1 else f"{days[first]} to {days[end - 1]}, mean of {count} days"
    return _Column(text, tuple(_mean(values[first:end]) for values in series))


def _mean(values: Sequence[float | None]) -> float | None:
    figures = [value for value in values if value is not None]
    return sum(figures) / len(figures) if figures else None


def _axis(columns: Sequence[_Column], *, parts: bool, whole: bool) -> _Axis:
    """Return the axis with about :data:`_TICKS` steps, of a round number each, that holds all values."""
    filled = [[value or 0.0 for value in column.values] for column in columns]
    heights = (
        [sum(values) for values in filled] if parts else [value for values in filled for value in values]
    )
    highest, lowest = max(heights, default=0.0), min(heights, default=0.0)
    highest, lowest = max(highest, 0.0), min(lowest, 0.0)
    step = (highest - lowest or 1.0) / _TICKS
    if whole:
        step = max(step, 1.0)
    power: float = 10.0 ** math.floor(math.log10(step))
    factors = (1, 2, 5, 10) if whole and power < 10 else (1, 2, 2.5, 5, 10)
    step = next(factor for factor in factors if factor * power >= step * 0.9999) * power
    bottom, top = math.floor(lowest / step), math.ceil(highest / step * 0.9999)
    return _Axis(step, bottom, max(top, bottom + 1))


def _opened(kind: str, box: str, title: str) -> Markup:
    return Markup('<svg class="{}" viewBox="{}" role="img" aria-label="{}">').format(kind, box, title)


def _ticks(axis: _Axis, label: Label) -> list[Markup]:
    lines = []
    for tick in range(axis.bottom, axis.top + 1):
        y = axis.y(axis.step * tick)
        lines.append(
            Markup('<line class="axis" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
                _LEFT, _WIDTH - _RIGHT, y, y
            )
            + Markup('<text class="soft" x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
                _LEFT - 6, y + 4, label(axis.step * tick)
            )
        )
    return lines


def _dates(days: Sequence[str], columns: int, step: float) -> Markup:
    """Return the dates of the first, middle and last column, each below its bar."""
    each = math.ceil(len(days) / max(columns, 1)) or 1
    places = sorted({0, (columns - 1) // 2, columns - 1}) if len(days) else []
    texts = []
    for at in places:
        middle = _LEFT + step * (at + 0.5)
        half = _DATE_WIDTH / 2
        anchor, x = "middle", middle
        if middle < _LEFT + half:
            anchor, x = "start", min(middle, _LEFT)
        elif middle > _WIDTH - half:
            anchor, x = "end", max(middle, _WIDTH - _RIGHT)
        texts.append(
            Markup('<text class="soft" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
                x, _HEIGHT - 8, anchor, days[min(at * each, len(days) - 1)]
            )
        )
    return Markup("").join(texts)


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
        flows, key=lambda flow: (list(sources).index(flow.source), list(targets).index(flow.target))
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
