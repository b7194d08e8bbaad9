"""The run id that a DAG run's conf may bring."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.iota.day import IOTA
from permalake.orchestrate.context import request_from
from permalake.pipeline.request import RUN_ID

SETTINGS = Settings(networks={"shimmer": {"protocol": "stardust", "bech32_hrp": "smr", "path": "archive"}})


def request(run_id):
    run = SimpleNamespace(
        conf={RUN_ID: run_id}, run_type="manual", run_after=datetime(2022, 9, 29, tzinfo=UTC)
    )
    params = {"network": "shimmer", "date": "2022-09-28"}
    return request_from(SETTINGS, IOTA, {"dag_run": run, "run_id": "airflow's", "params": params})


@pytest.mark.parametrize("run_id", ["manual__2026-11-22T22:00:00+00:00", "run-20220928.1~a", "x" * 250])
def test_a_run_id_is_taken_as_it_is(run_id) -> None:
    assert request(run_id).run_id == run_id


@pytest.mark.parametrize(
    "run_id",
    ["--force", "../../etc", "a b", "a\nb", "a'; drop table x", "x" * 251, "é", ["a"], {"a": 1}, 7, True],
)
def test_anything_else_is_refused_on_one_line(run_id) -> None:
    with pytest.raises(ConfigError, match=f"^{RUN_ID} .*not a run id") as error:
        request(run_id)
    assert "\n" not in str(error.value)
