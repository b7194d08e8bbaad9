"""The search of every page over two tangles and Wormhole: the chosen network first, then all others."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from support import synthetic_lake


@pytest.fixture(scope="module")
def client(whole_lake):
    networks = {name: one for name, one in whole_lake.settings.networks.items() if name != "cut"}
    with TestClient(create_app(whole_lake.settings.model_copy(update={"networks": networks}))) as client:
        yield client


def lands(client, text, network):
    answer = client.get("/search", params={"q": text, "in": network}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].partition("?")[0]


@pytest.mark.parametrize("chosen", ["wormhole", "iota", "shimmer"])
def test_what_another_network_has_is_found_there(client, whole_lake, chosen) -> None:
    message = synthetic_lake.tables("stardust")["messages"][5]["message_id"]
    older = synthetic_lake.tables("chrysalis")["messages"][5]["message_id"]
    vaa = whole_lake.wormhole_rows["message_publication"][0]
    assert lands(client, message, chosen) == "/shimmer/explore"
    assert lands(client, older, chosen) == "/iota/explore"
    assert lands(client, vaa["row_key"], chosen) == "/wormhole"
    assert lands(client, vaa["initiating_tx_id"], chosen) == "/wormhole"


@pytest.mark.parametrize("text", ["0" * 64, "nothing has this name", "<b>", "", " "])
def test_what_nobody_has_stays_with_the_chosen_network(client, text) -> None:
    assert lands(client, text, "iota") == "/iota/explore"
    assert lands(client, text, "wormhole") == "/wormhole"


def test_the_chosen_network_comes_first(client) -> None:
    """Both tangles have a milestone of this index."""
    index = str(synthetic_lake.tables("stardust")["milestones"][0]["milestone_index"])
    assert lands(client, index, "shimmer") == "/shimmer/explore"
