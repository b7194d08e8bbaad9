"""The days of each table that an audit reads."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from permalake.audit.staged import scope_of
from permalake.config import Settings
from permalake.config.services import PricesSettings
from permalake.wormhole.contracts import WORMHOLE_TABLES

DAY = dt.date(2024, 5, 10)


@pytest.mark.parametrize(
    ("window_hours", "days"), [(0.5, 1), (12, 1), (24, 1), (24.5, 2), (72, 3), (744, 31)]
)
def test_side_tables_are_read_as_far_as_a_quote_may_lie(window_hours: float, days: int) -> None:
    spans: dict[str, tuple[dt.date, dt.date]] = {}

    def rows_of(asked: dict[str, tuple[dt.date, dt.date]], _without: object) -> dict[str, SimpleNamespace]:
        spans.update(asked)
        return {name: SimpleNamespace(count=0, size=0) for name in asked}

    staged = SimpleNamespace(rows_of=rows_of)
    attempt = SimpleNamespace(network="wormhole", start=DAY, end=DAY, refused={}, staged=staged)
    settings = Settings(prices=PricesSettings(window_hours=window_hours))
    scope_of(pytest.fail, settings, attempt, WORMHOLE_TABLES)
    assert spans["token_prices"] == (DAY - dt.timedelta(days), DAY + dt.timedelta(days))
    assert spans["token_transfer_details"] == (DAY, DAY)


@pytest.mark.parametrize("window_hours", [0, 0.001, -1, 745, float("inf"), float("nan")])
def test_a_window_that_cannot_work_is_refused(window_hours: float) -> None:
    with pytest.raises(ValidationError, match="window_hours"):
        PricesSettings(window_hours=window_hours)
