"""The Operations page: runs with the timings of their steps, and what days still wait for."""

from __future__ import annotations

import re

from support.lakes import DAY2, NETWORK


def operations(troubled, query=""):
    answer = troubled.api.get(f"/operations?{query}", headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_run_is_told_by_its_last_tries(troubled) -> None:
    [run] = operations(troubled)["runs"]
    assert (run["run"], run["network"], run["start"], run["end"]) == ("second", NETWORK, f"{DAY2}", f"{DAY2}")
    assert (run["state"], run["last_step"], run["seconds"]) == ("invalid", "audit", 191.0)
    assert run["began"] == "2022-09-30T06:00:00.000000Z"


def test_runs_are_listed_by_a_day_of_theirs(troubled) -> None:
    of_day = operations(troubled, f"network=&day={DAY2}")
    assert ([one["run"] for one in of_day["runs"]], of_day["day"]) == (["second"], f"{DAY2}")
    assert operations(troubled, "day=2001-01-01")["runs"] == []


def test_every_try_of_a_step_has_its_time(troubled) -> None:
    steps = operations(troubled, "run=second")["run"]["steps"]
    assert [(one["step"], one["try"], one["state"], one["seconds"]) for one in steps] == [
        ("ingest_decode", 1, "done", 40.0),
        ("analytics", 1, "failed", 9.0),
        ("analytics", 2, "done", 5.0),
        ("audit", 1, "invalid", 125.0),
    ]
    assert (steps[0]["rows"], steps[0]["quarantined"]) == (7, 2)
    assert steps[1]["reason"] == "the node was away"


def test_bars_are_as_long_as_their_steps(troubled) -> None:
    text = troubled.api.get("/operations", headers={"Accept": "text/html"}).text
    drawn = text[text.index('<svg class="waterfall"') : text.index("</svg>")]
    places = re.findall(r'x="([\d.]+)" y="\d+" width="([\d.]+)"', drawn)
    bars = [(float(x), float(width)) for x, width in places]
    assert len(bars) == 4
    scale = bars[3][1] / 125
    assert [round(width / scale) for _, width in bars] == [40, 9, 5, 125]
    assert [round((x - bars[0][0]) / scale) for x, _ in bars] == [0, 41, 60, 66]
    assert "2 min 05 s" in drawn


def test_what_is_unknown(troubled) -> None:
    assert troubled.api.get("/operations?run=nosuch").status_code == 404
    assert operations(troubled, "network=nosuch")["runs"] == []


def test_a_page_leads_to_itself_with_its_days(troubled) -> None:
    page = troubled.api.get(f"/{NETWORK}", headers={"Accept": "text/html"}).text
    link = re.search(r'<a href="([^"]*)">link to these days</a>', page)[1].replace("&amp;", "&")
    shown = troubled.api.get(f"/{NETWORK}{link}", headers={"Accept": "text/html"}).text
    assert "link to these days" not in shown
    assert troubled.api.get(f"/{NETWORK}{link}&format=json").json()["start"] in link
    refused = troubled.api.get(f"/{NETWORK}?as_of=3")
    assert (refused.status_code, "/data/sql" in refused.json()["detail"]) == (400, True)
