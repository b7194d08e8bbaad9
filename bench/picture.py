"""Draws the figures: every one as the ratio of ours to the peer's."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import pandas as pd


def draw(results: dict, file: Path) -> None:
    """One bar per figure that has a peer; at the line both are equal."""
    rows = [
        {"figure": f"{figure['name']} / {figure['peer_name']}", "ratio": figure["ratio"]}
        for one in results.values()
        for figure in one["figures"]
        if figure.get("ratio")
    ]
    if not rows:
        return
    bars = (
        alt.Chart(pd.DataFrame(rows), title="Ours as a ratio to the peer measured in the same run")
        .mark_bar(color="#3e6990")
        .encode(
            x=alt.X("ratio:Q", title="ratio"),
            y=alt.Y("figure:N", title=None, sort=None, axis=alt.Axis(labelLimit=420)),
        )
    )
    text = bars.mark_text(align="left", dx=4).encode(text=alt.Text("ratio:Q", format=".2f"))
    line = alt.Chart(pd.DataFrame({"one": [1.0]})).mark_rule(strokeDash=[4, 3]).encode(x="one:Q")
    (bars + text + line).properties(width=420).save(file)
