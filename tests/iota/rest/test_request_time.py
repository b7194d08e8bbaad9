"""The time of a request bounds what it looks up, not only its queries."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from permalake.config.serving import ServeSettings
from permalake.iota.rest import ledger
from permalake.lake.serving import QueryTimeoutError, Scan
from permalake.web.state import RequestLake


def test_a_request_whose_time_is_up_looks_up_no_more_outputs() -> None:
    looked_up = []

    def find(*of_id):
        looked_up.append(of_id)
        lake.extend(-1)
        return Scan()

    reader = SimpleNamespace(snapshot=lambda: SimpleNamespace(has_head=False), find=find)
    app = SimpleNamespace(state=SimpleNamespace(reader=reader))
    request = Request({"type": "http", "app": app, "state": {"deadline": time.monotonic() + 60}})
    settings = SimpleNamespace(serve=ServeSettings())
    lake = RequestLake(request, reader, settings, "shimmer")  # type: ignore[arg-type]
    with pytest.raises(QueryTimeoutError):
        ledger.spent(lake, ["00" * 34] * 5000, 1)
    assert 0 < len(looked_up) <= 1000
