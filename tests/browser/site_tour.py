"""``make site-tour``: the pages of ``permalake serve`` in a real browser, in both themes, narrow and wide.

Fails for a message on the console, a request to another host, a violation that axe-core finds, a page wider
than its window, or one of more than 150 kB. Goes over the lake of ``make demo``; ``--folder DIR`` takes the
screenshots elsewhere, all of them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import httpx

from permalake.api.app import create_app
from permalake.config import load_settings
from permalake.paths import ROOT
from support.browser import Browser, browser
from support.live_api import live_api
from support.site_pages import THEMES, WIDTHS, faults, is_too_large, pages_of, screenshot

SHOTS = ROOT / "docs" / "tour"
TALLEST = 2600
TALLEST_KEPT = 1100
KEPT = {
    ("flows", 1280, "light"): "13-flows",
    ("overview", 1280, "light"): "14-overview",
    ("quality-wormhole", 1280, "light"): "15-quality",
    ("operations", 1280, "light"): "16-operations",
    ("message-shimmer", 1280, "light"): "17-verified-block",
    ("flows", 360, "dark"): "18-flows-on-a-phone",
}
"""Screenshots that belong into the documentation."""
_DEAREST = """
SELECT row_key, origin_chain, origin_address, sender_address,
    token_transfer_payload.target_chain
FROM wormhole.token_transfer_payload JOIN wormhole.token_transfer_details USING (row_key)
JOIN wormhole.chain_details USING (row_key) SEMI JOIN wormhole.redemptions USING (row_key)
WHERE token_transfer_payload.date < DATE '2100-01-01' AND sender_address IS NOT NULL
ORDER BY notional_usd DESC NULLS LAST LIMIT 1
"""
"""The real transfer of the demo that was worth most and was redeemed."""
_BUSIEST = "SELECT address FROM synthetic.ledger_updates GROUP BY ALL ORDER BY count(*) DESC, 1 LIMIT 1"
_MOST_MOVED = """
SELECT token_id FROM synthetic.native_tokens GROUP BY ALL HAVING max(length(CAST(amount AS VARCHAR))) < 8
ORDER BY count(*) DESC, 1 LIMIT 1
"""
"""Of the synthetic tokens with a supply that people can read."""
_VERIFY = """
(async () => {
  document.getElementById('verify').click();
  while (!document.getElementById('steps').children.length) await new Promise(done => setTimeout(done, 50));
})()
"""


def visit(page: Browser, address: str, folder: Path) -> int:
    """Visit every page; return the number of faults."""
    count = 0
    for name, path in pages_of(address).items():
        seen = page.visit(address + path)
        if path.split("/")[-2:-1] == ["message"] and name.startswith("message-"):
            page.evaluate(_VERIFY)
        for theme in THEMES:
            for width in WIDTHS:
                page.look(width=width, theme=theme)
                wrong = faults(page, seen, address, theme, width)
                wrong += ["too large"] if is_too_large(address, path) else []
                count += len(wrong)
                kept = KEPT.get((name, width, theme))
                if kept or folder != SHOTS:
                    file = folder / f"{kept or f'{name}-{width}-{theme}'}.png"
                    screenshot(page, file, width=width, theme=theme, most=TALLEST_KEPT if kept else TALLEST)
                sys.stdout.write(f"{name} {width} {theme}: {'; '.join(wrong) or 'fine'}\n")
    return count


def _one(address: str, sql: str) -> dict[str, str]:
    """Return the one row of a statement."""
    asked = httpx.get(f"{address}/api/sql/v1", params={"sql": sql}, timeout=60)
    [row] = asked.raise_for_status().json()["items"]
    return dict(row)


def transfer_story(address: str) -> dict[str, str]:
    """Return the pages of one transfer, from its message to its redemption, and of what it leads to."""
    transfer = _one(address, _DEAREST)
    source, target = transfer["row_key"].split(":")[0], transfer["target_chain"]
    days = "?start=2025-01-01&end=2025-12-31"
    return {
        "19-a-transfer": f"/wormhole/vaa/{transfer['row_key'].replace(':', '/')}",
        "20-its-token": f"/wormhole/token/{transfer['origin_chain']}/{transfer['origin_address']}{days}",
        "21-its-sender": f"/wormhole/address/{transfer['sender_address']}{days}",
        "22-its-corridor": f"/wormhole/corridor/{source}/{target}{days}",
    }


def weeks_story(address: str) -> dict[str, str]:
    """Return the pages of the demo's synthetic weeks: of the network, a day, an address and a token."""
    explore = "/synthetic/explore"
    return {
        "23-three-weeks": "/synthetic",
        "24-a-day-by-hour": f"{explore}/day/2100-01-12",
        "25-an-address": f"{explore}/address/{_one(address, _BUSIEST)['address']}",
        "26-a-native-token": f"{explore}/foundry/{_one(address, _MOST_MOVED)['token_id'].removeprefix('0x')}",
    }


def tell(page: Browser, address: str, folder: Path) -> None:
    """Take the pictures of the stories."""
    for name, path in (transfer_story(address) | weeks_story(address)).items():
        page.visit(address + path)
        page.look(width=1280, theme="light")
        screenshot(page, folder / f"{name}.png", width=1280, theme="light", most=TALLEST_KEPT)


def main() -> int:
    """Visit the pages over the configured lake."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=SHOTS)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with live_api(create_app(load_settings(None))) as address, browser() as page:
        tell(page, address, folder)
        return 1 if visit(page, address, folder) else 0


if __name__ == "__main__":
    sys.exit(main())
