"""Writes the figures as a page: ours, the peer's, their ratio, and what else was measured in the run."""

from __future__ import annotations

from pathlib import Path

_MAIN = {"name", "unit", "ours", "peer", "peer_name", "ratio"}


def write(results: dict, file: Path) -> None:
    """One row per figure, under the benchmark that measured it."""
    lines = [
        "# Measured",
        "",
        "Written by `python -m bench`. Ours and the peer's come from one run on one machine; a ratio",
        "above 1 means that ours is the better one. All inputs are synthetic or the bundled samples.",
        "",
        "![Ratios](results.svg)",
    ]
    for name, one in results.items():
        machine = one["machine"]
        lines += [
            "",
            f"## {name}",
            "",
            f"{one['measured_at'][:10]}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
            f"Python {machine['python']}.",
            "",
            "| figure | ours | peer | ratio | also |",
            "| --- | ---: | ---: | ---: | --- |",
            *(_row(figure) for figure in one["figures"]),
        ]
    file.write_text("\n".join([*lines, ""]), "utf-8")


def _row(figure: dict) -> str:
    more = {name: value for name, value in figure.items() if name not in _MAIN}
    also = ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in more.items())
    peer = f"{_number(figure['peer'])} ({figure['peer_name']})" if "peer" in figure else ""
    ours = f"{_number(figure['ours'])} {figure['unit']}"
    return f"| {figure['name']} | {ours} | {peer} | {figure.get('ratio', '')} | {also} |"


def _number(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name} {_number(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_number, value))
    return f"{value:,}" if isinstance(value, int | float) else str(value)
