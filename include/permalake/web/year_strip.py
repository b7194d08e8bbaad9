"""A year as SVG: a small square per day in columns of weeks, coloured by the day's state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import date, timedelta

from markupsafe import Markup

_STEP, _SIZE, _TOP = 12, 10, 16
_WIDTH = 54 * _STEP


def year_strip(year: int, states: Mapping[date, tuple[str, str]]) -> Markup:
    """Return a year; ``states``: class of the style sheet and word, of the days that the lake knows."""
    squares, words = defaultdict[str, list[str]](list), defaultdict[str, int](int)
    first = date(year, 1, 1)
    months = []
    for number in range((date(year, 12, 31) - first).days + 1):
        day = first + timedelta(number)
        week, row = divmod(number + first.weekday(), 7)
        kind, word = states.get(day, ("none", ""))
        squares[kind].append(f"M{week * _STEP} {_TOP + row * _STEP}h{_SIZE}v{_SIZE}h-{_SIZE}z")
        if word:
            words[word] += 1
        if day.day == 1:
            months.append(
                Markup('<text class="soft" x="{}" y="11">{}</text>').format(week * _STEP, day.strftime("%b"))
            )
    summary = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
    out = [
        Markup('<svg class="year" viewBox="0 0 {} {}" role="img" aria-label="{}: {}">').format(
            _WIDTH, _TOP + 7 * _STEP, year, summary or "no days"
        ),
        *months,
        *(Markup('<path class="{}" d="{}"/>').format(kind, "".join(all_)) for kind, all_ in squares.items()),
        Markup("</svg>"),
    ]
    return Markup("").join(out)
