"""What a run is asked to build, from arguments and from a DAG run's parameters."""

from __future__ import annotations

from datetime import date

import pytest

from permalake.config import load_settings
from permalake.errors import ConfigError
from permalake.iota.day import IOTA
from permalake.pipeline.request import BuildRequest, parse_day, request_of
from permalake.wormhole.day import WORMHOLE

DAY = date(2022, 9, 28)


def test_parameters_left_out_are_the_interval_and_the_only_network(settings, config) -> None:
    given = request_of(settings, WORMHOLE, {}, DAY, "r1")
    assert (given.network, given.start, given.end, given.only, given.force) == (
        "wormhole",
        DAY,
        DAY,
        None,
        False,
    )
    one = load_settings(config).model_copy(update={"networks": {"shimmer": settings.networks["shimmer"]}})
    assert request_of(one, IOTA, {"network": None}, DAY, "r1").network == "shimmer"


def test_a_first_day_alone_is_a_range_of_one_day(settings) -> None:
    given = request_of(settings, IOTA, {"network": "shimmer", "start": "2022-01-02"}, DAY, "r1")
    assert given.start == given.end == date(2022, 1, 2)


def test_arguments_are_what_every_job_takes(settings) -> None:
    params = {
        "network": "shimmer",
        "start": "2022-01-02",
        "end": "2022-01-03",
        "only": "audit",
        "force": True,
    }
    given = request_of(settings, IOTA, params, DAY, "r1")
    assert " ".join(given.arguments) == (
        "--network shimmer --start 2022-01-02 --end 2022-01-03 --run-id r1 --dag-run r1 --force"
    )
    assert (given.days, given.only, given.force) == ("2022-01-02..2022-01-03", "audit", True)


def test_several_networks_want_a_choice(settings) -> None:
    with pytest.raises(ConfigError, match="shimmer, testnet"):
        IOTA.choose(settings, None)
    with pytest.raises(ConfigError, match=r"networks\.nowhere"):
        IOTA.choose(settings, "nowhere")
    with pytest.raises(ConfigError, match="one namespace"):
        WORMHOLE.choose(settings, "shimmer")


def test_a_network_that_is_not_scheduled_is_built_by_name_alone(settings) -> None:
    by_name = settings.networks["testnet"].model_copy(update={"scheduled": False})
    given = settings.model_copy(
        update={"networks": {"testnet": by_name, "shimmer": settings.networks["shimmer"]}}
    )
    assert IOTA.choose(given, None) == "shimmer"
    assert IOTA.choose(given, "testnet") == "testnet"
    assert IOTA.choose(given.model_copy(update={"networks": {"testnet": by_name}}), None) == "testnet"


@pytest.mark.parametrize("text", ["2022-9-28", "28.09.2022", "20220928", "2022-W39-3", "2022-02-30", "today"])
def test_a_day_is_written_one_way(text) -> None:
    with pytest.raises(ConfigError, match="YYYY-MM-DD"):
        parse_day("--date", text)


def test_a_range_does_not_run_backwards() -> None:
    with pytest.raises(ConfigError, match="ends"):
        BuildRequest(IOTA, "shimmer", DAY, date(2022, 9, 27), "r1")


def test_phases_are_found_in_their_step() -> None:
    assert WORMHOLE.step_of("enrich").name == "enrich_analytics"
    assert WORMHOLE.step_of("enrich_analytics").name == "enrich_analytics"
    assert IOTA.step_of("decode").name == "ingest_decode"
    with pytest.raises(ConfigError, match="ingest, decode, analytics, audit, publish"):
        IOTA.step_of("enrich")


def test_a_later_start_leaves_earlier_steps_alone() -> None:
    left = [step.name for step in WORMHOLE.steps if WORMHOLE.comes_before(step, "enrich")]
    assert left == ["ingest_decode"]
    assert not any(IOTA.comes_before(step, None) for step in IOTA.steps)


@pytest.mark.parametrize("domain", [IOTA, WORMHOLE], ids=["iota", "wormhole"])
def test_a_submit_goes_on_up_to_the_carried_tables_and_never_waits_for_a_store(domain) -> None:
    chained = [step.name for step in domain.chained(domain.step("audit"))]
    assert chained == ["publish", "carry"]
    assert all(domain.step(name).light for name in chained)
