"""iota-sdk's indexer calls against the served API, compared with the lake's rows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from permalake.api.app import create_app
from support import places, synthetic_lake
from support.live_api import live_api

SCRIPT = places.DATA.parent / "support" / "clients" / "iota_sdk_calls.py"
KINDS = ("basic", "alias", "nft", "foundry")


@pytest.fixture(scope="module")
def call(synthetic_settings):
    """Runs calls of iota-sdk against the network ``shimmer``."""
    with live_api(create_app(synthetic_settings)) as url:

        def run(*calls):
            done = subprocess.run(
                [sys.executable, SCRIPT, f"{url}/shimmer"],
                input=json.dumps(calls),
                check=True,
                capture_output=True,
                text=True,
                timeout=120,
            )
            return json.loads(done.stdout)

        yield run


def test_every_indexer_call_of_iota_sdk(call) -> None:
    tables = synthetic_lake.tables("stardust")
    spent = {row["output_id"] for row in tables["consumed_outputs"]}
    last = max(row["end_ms"] for row in tables["date_cache"])
    unspent = {
        kind: [row for row in tables[f"{kind}_outputs"] if row["output_id"] not in spent] for kind in KINDS
    }

    def ids(kinds, wanted=lambda row: True):
        rows = [row for kind in kinds for row in unspent[kind] if wanted(row)]
        return [
            f"0x{row['output_id']}" for row in sorted(rows, key=lambda r: (r["ms_timestamp"], r["output_id"]))
        ]

    address = unspent["basic"][0]["address"]
    controller, foundry = unspent["alias"][0]["state_controller"], unspent["foundry"][0]
    alias_ids = {row["alias_id"]: row["output_id"] for row in unspent["alias"]}
    dead_nft = tables["nft_outputs"][0]["nft_id"]
    expected = {
        # The client walks all pages.
        ("output_ids", ()): ids(KINDS),
        ("output_ids", (("has_native_tokens", True),)): ids(KINDS, lambda row: row["native_token_count"] > 0),
        ("basic_output_ids", (("address", address), ("page_size", 1))): ids(
            ["basic"], lambda row: row["address"] == address
        ),
        ("basic_output_ids", (("has_expiration", True), ("has_timelock", False))): ids(
            ["basic"], lambda row: row["expiration_time"] and not row["timelock_time"]
        ),
        ("basic_output_ids", (("has_storage_deposit_return", True),)): ids(
            ["basic"], lambda row: row["storage_return_address"]
        ),
        ("alias_output_ids", (("state_controller", controller),)): ids(
            ["alias"], lambda row: row["state_controller"] == controller
        ),
        ("nft_output_ids", ()): ids(["nft"]),
        ("foundry_output_ids", (("alias_address", foundry["address"]),)): ids(
            ["foundry"], lambda row: row["address"] == foundry["address"]
        ),
    }
    lists = call(*([method, dict(query)] for method, query in expected))
    assert lists == [{"ledgerIndex": last, "items": wanted} for wanted in expected.values()]
    alias_id, output_id = next(iter(alias_ids.items()))
    found_alias, found_foundry, no_nft, health = call(
        ["alias_output_id", [f"0x{alias_id}"]],
        ["foundry_output_id", [f"0x{foundry['foundry_id']}"]],
        ["nft_output_id", [f"0x{dead_nft}"]],
        ["get_info", []],
    )
    assert (found_alias, found_foundry) == (f"0x{output_id}", f"0x{foundry['output_id']}")
    assert "404" in json.dumps(no_nft) or "not" in no_nft["error"].lower()
    assert "error" not in health
