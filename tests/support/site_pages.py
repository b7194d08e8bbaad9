"""The pages of ``permalake serve``, one of each kind, and what must hold for each in a browser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from support import npm
from support.browser import Browser, Visit
from support.chromium_binary import HERE

WIDTHS = (1280, 768, 360)
THEMES = ("light", "dark")
LARGEST = 150_000
_AXE = """
axe.run(document, {resultTypes: ['violations'], ...%s}).then(found => found.violations.map(one =>
  one.id + ': ' + one.nodes.map(node => node.target.join(' ')).slice(0, 3).join(', ')))
"""
_RULES: dict[tuple[str, int], dict[str, Any]] = {
    ("light", 1280): {},
    ("light", 360): {},
    ("dark", 1280): {"runOnly": {"type": "rule", "values": ["color-contrast"]}},
}
"""What axe-core is asked of the page, by theme and width: the style sheet has one layout for windows of up to
600 px and one for all others, and of a theme only the colours differ."""


def pages_of(address: str) -> dict[str, str]:
    """Return the path of a page of each kind."""
    cards = _json(address, "/")["cards"]
    networks = [card["network"] for card in cards]
    found = {"overview": "/", "operations": "/operations", "data": "/data"}
    for name in networks:
        table = "token_prices" if name == "wormhole" else "messages"
        found |= {f"tables-{name}": f"/data/{name}", f"table-{name}": f"/data/{name}/{table}"}
        found[f"sql-{name}"] = f'/data/sql?sql=SELECT * FROM "{name}".{table} LIMIT 20'
        day = next(card["last"] for card in cards if card["network"] == name)
        found[f"built-{name}"] = f"/day?network={name}&date={day}"
        found[f"quality-{name}"] = f"/quality?network={name}"
        found[f"changes-{name}"] = f"/quality/changes?network={name}&day={day}"
        found[f"verify-{name}"] = f"/verify?network={name}"
        if name != "wormhole":
            found |= {f"network-{name}": f"/{name}"} | _explorer(address, name)
    if "wormhole" in networks:
        flows = _json(address, "/wormhole")
        found |= {"flows": "/wormhole", "message": f"/wormhole/vaa/{flows['recent'][0]['id']}"}
        if flows["tokens"]:
            token = flows["tokens"][0]
            found["token"] = f"/wormhole/token/{token['chain_id']}/{token['address']}"
            found["chain"] = f"/wormhole/chain/{flows['corridors'][0]['source_id']}"
            pair = flows["corridors"][0]
            found["corridor"] = f"/wormhole/corridor/{pair['source_id']}/{pair['target_id']}"
            found |= {name: f"/wormhole/{name}" for name in ("messages", "corridors", "tokens")}
            found["application"] = "/wormhole/application/PORTAL_TOKEN_BRIDGE"
            found |= _sender(address)
            found["search"] = f"/wormhole?q={token['chain_id']}:{token['address']}"
    return found


def _sender(address: str) -> dict[str, str]:
    """Return the page of an address that sent a transfer, and that of the newest guardian set."""
    sql = "SELECT max(sender_address) AS sender FROM wormhole.priced_transfers"
    [row] = _json(address, f"/api/sql/v1?sql={sql}")["items"]
    sets = "SELECT max(guardian_set_index) AS newest FROM wormhole.message_publication"
    [newest] = _json(address, f"/api/sql/v1?sql={sets}")["items"]
    found = {"guardian_set": f"/wormhole/guardian-set/{newest['newest']}?start=2020-01-01"}
    return found | ({"account": f"/wormhole/address/{row['sender']}"} if row["sender"] else {})


def _json(address: str, path: str) -> Any:
    answer = httpx.get(address + path, headers={"Accept": "application/json"}, timeout=60)
    assert answer.status_code == 200, (path, answer.text)
    return answer.json()


def _explorer(address: str, network: str) -> dict[str, str]:
    """Return a milestone that changes the ledger, and a page of each kind that it leads to."""
    base = f"/{network}/explore"
    newest = _json(address, f"/api/analytics/v1/{network}/ms_analytics?pageSize=1000")["items"]
    index = next(row["milestone_index"] for row in newest if row["transaction_count"])
    milestone = _json(address, f"{base}/milestone/{index}")["found"]
    included = next(one for one in milestone["messages"] if one["state"] == "included")
    output = _json(address, f"{base}/output/{milestone['created'][0]}")["found"]
    owner = next(word for one in output["conditions"] for word in one.split() if len(word) > 40)
    paths = {
        "explore": "",
        "milestone": f"/milestone/{index}",
        "message": f"/message/{included['id']}",
        "output": f"/output/{output['id']}",
        "address": f"/address/{owner}",
        "transaction": f"/transaction/{output['transaction_id']}",
        "day": f"/day/{milestone['time'][:10]}",
        "changes": "/changes",
        "messages": "/messages",
    }
    for kind in ("alias", "nft", "foundry"):
        index_of = f"{address}/{network}/api/indexer/v1/outputs/{kind}?state=all&pageSize=1"
        answer = httpx.get(index_of, timeout=60)
        if answer.status_code == 200:  # Chrysalis has none
            paths["nfts"] = "/nfts"
        if answer.status_code == 200 and answer.json()["items"]:
            state = answer.json()["items"][0].removeprefix("0x")
            paths[kind] = f"/{kind}/{_json(address, f'{base}/output/{state}')['found']['chain']}"
    if "nfts" in paths:
        issuers = [row["issuer"] for row in _json(address, f"{base}/nfts")["rows"] if row["issuer"]]
        paths |= {"collection": f"/collection/{issuers[0]}"} if issuers else {}
    return {f"{kind}-{network}": base + path for kind, path in paths.items()}


def faults(browser: Browser, visit: Visit, address: str, theme: str, width: int) -> list[str]:
    """Return what is wrong with the page that is shown."""
    found = [f"console: {line}" for line in visit.console]
    found += [f"asks {url}" for url in visit.requests if not url.startswith((address, "data:"))]
    if browser.evaluate("document.documentElement.scrollWidth") > width:
        found.append("wider than its window")
    if (theme, width) in _RULES:
        found += [f"axe: {one}" for one in violations(browser, _RULES[theme, width])]
    return found


def violations(browser: Browser, options: Mapping[str, Any] = _RULES["light", 1280]) -> list[str]:
    """Return what axe-core finds: rule, and the elements that break it."""
    if not browser.evaluate("typeof axe !== 'undefined'"):
        source = npm.install(HERE) / "axe-core" / "axe.min.js"
        browser.evaluate(source.read_text("utf-8") + "\n;true")
    return list(browser.evaluate(_AXE % json.dumps(options)))


def is_too_large(address: str, path: str) -> bool:
    """Whether the page itself, not compressed, has more bytes than a page may have."""
    return len(httpx.get(address + path, headers={"Accept": "text/html"}, timeout=60).content) > LARGEST


def tall(browser: Browser, most: int) -> int:
    """Return the height of the page, at most ``most``."""
    return min(int(browser.evaluate("document.documentElement.scrollHeight")), most)


def screenshot(browser: Browser, file: Path, *, width: int, theme: str, most: int) -> None:
    """Take a picture of the page as far as ``most`` pixels down."""
    browser.look(width=width, theme=theme, height=tall(browser, most))
    browser.screenshot(file)
    browser.look(width=width, theme=theme)
