"""A client that is generated from the OpenAPI document reads a milestone, a VAA and a table of analytics."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

GENERATOR = Path(sys.executable).with_name("openapi-python-client")
NAME = "generated_permalake_client"


@pytest.fixture(scope="module")
def client(whole, tmp_path_factory):
    """The generated package, and a client of it towards the server."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "openapi.json").write_bytes(httpx.get(f"{whole.address}/openapi.json", timeout=60).content)
    # Formatting hundreds of files would take most of the time.
    (folder / "config.yml").write_text("post_hooks: []\n")
    done = subprocess.run(
        [
            *(GENERATOR, "generate", "--path", "openapi.json", "--config", "config.yml", "--meta", "none"),
            *("--output-path", NAME),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        package = importlib.import_module(NAME)
        yield package.Client(base_url=whole.address, timeout=httpx.Timeout(60))
        for module in [name for name in sys.modules if name.split(".")[0] == NAME]:
            del sys.modules[module]


def operation(group, name):
    return importlib.import_module(f"{NAME}.api.{group}.{name}")


def test_a_milestone(client, whole) -> None:
    last = operation("core_v2", "get_shimmer_api_core_v2_info").sync(client=client).status.confirmed_milestone
    milestone = operation("core_v2", "get_shimmer_api_core_v2_milestones_by_index_index").sync(
        last.index, client=client
    )
    expected = httpx.get(f"{whole.address}/shimmer/api/core/v2/milestones/by-index/{last.index}").json()
    assert (milestone.index, milestone.timestamp) == (last.index, last.timestamp)
    assert milestone.to_dict() == expected


def test_a_vaa(client, whole) -> None:
    row = whole.wormhole_rows["message_publication"][0]
    chain, emitter, sequence = row["row_key"].split(":")
    get = operation("wormholescan", "get_wormhole_api_v1_vaas_chain_emitter_sequence")
    vaa = get.sync(chain, emitter, str(int(sequence)), client=client, parsed_payload=True).data
    assert (vaa.emitter_chain, vaa.emitter_addr, vaa.sequence) == (int(chain), emitter, int(sequence))
    missing = get.sync(chain, emitter, str(2**63), client=client)
    assert (missing.status, missing.error.code) == (404, "404")


def test_a_table_of_analytics_page_by_page(client, whole) -> None:
    get = operation("analytics", "get_api_analytics_v1_network_notional_transferred_daily")
    rows, page = [], get.sync("wormhole", client=client, page_size=7)
    while True:
        rows += page.items
        if not page.cursor:
            break
        page = get.sync("wormhole", client=client, cursor=page.cursor)
    assert len(rows) == len(whole.wormhole_rows["notional_transferred_daily"]) > 7
    assert {type(row.transfers) for row in rows} == {int}
