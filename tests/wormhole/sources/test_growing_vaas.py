"""Sources of VAAs that grow: what a list has added, and when that is asked for again."""

from __future__ import annotations

import time

from permalake.lake.head_position import Reached
from permalake.wormhole.sources import growing_vaas
from permalake.wormhole.sources.growing_vaas import ListedVaas
from support.lakes import settings_of


def test_a_list_is_added_again_to_a_head_that_was_dropped(tmp_path, monkeypatch) -> None:
    now, document = int(time.time()), {"id": "2/00/1"}
    newest = lambda _settings, _section, _since, is_new: [one for one in (document,) if is_new(one)]  # noqa: E731
    monkeypatch.setattr(growing_vaas.wormholescan, "newest", newest)
    monkeypatch.setattr(growing_vaas, "time_of_vaa", lambda _: now)
    monkeypatch.setattr(growing_vaas, "of_rows", lambda *_: None)
    monkeypatch.setattr(growing_vaas.vaa_files, "of_json_lines", lambda *_: None)
    source = ListedVaas(None, settings_of(tmp_path), None)
    before = Reached(None, now, {})
    assert source.news(None)
    source.keep()
    assert source.news(before) is None
    assert source.news(None)
