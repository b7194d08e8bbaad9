"""Every page in a headless Chromium, in both themes, at 360 and 1280 px: console, requests, axe-core."""

from __future__ import annotations

import json

import httpx
import pytest

from support import chromium_binary
from support.browser import browser as started
from support.served_wormhole import FAR_CHAIN, FAR_EMITTER
from support.site_pages import THEMES, WIDTHS, faults, is_too_large, violations

HOSTILE = f"/wormhole/vaa/{FAR_CHAIN}/{FAR_EMITTER}/7"


def test_every_page_is_accessible_and_asks_nobody(site, pages, browser):
    pages = {**pages, "hostile": HOSTILE}
    kinds = {name.split("-")[0] for name in pages}
    assert {"overview", "operations", "quality", "network", "explore", "milestone", "message"} <= kinds
    assert {
        "output",
        "address",
        "flows",
        "search",
        "hostile",
        "token",
        "chain",
        "application",
        "transaction",
        "day",
    } <= kinds
    assert {"alias", "nft", "foundry"} <= kinds
    wrong = {}
    for name, path in pages.items():
        visit = browser.visit(site + path)
        assert visit.requests, name
        found = ["too large"] if is_too_large(site, path) else []
        for theme in THEMES:
            for width in WIDTHS:
                browser.look(width=width, theme=theme)
                found += [f"{theme} {width}: {fault}" for fault in faults(browser, visit, site, width)]
        if found:
            wrong[name] = found
    assert wrong == {}


def test_themes_differ_and_no_page_is_blank(site, browser):
    colours = set()
    browser.visit(f"{site}/")
    for theme in THEMES:
        browser.look(width=1280, theme=theme)
        colours.add(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2
    assert browser.evaluate("document.body.innerText.length") > 200


def test_a_picture_of_flows_in_usd_is_one_click_behind_the_first_page(site, browser):
    """``make demo`` names the first page; the second click shows the picture."""
    browser.visit(f"{site}/")
    browser.look(width=1280, theme="light")
    visit = browser.click("Flows in USD")
    assert visit.requests[0] == f"{site}/wormhole"
    shape = browser.evaluate(
        "(({top, bottom, width, height}) => ({top, bottom, width, height}))"
        "(document.querySelector('svg.sankey').getBoundingClientRect())"
    )
    assert shape["top"] < 900, "seen without scrolling"
    assert shape["width"] > 300
    drawn = browser.evaluate("document.querySelector('svg.sankey').textContent")
    assert "ethereum to solana: $" in drawn
    assert browser.evaluate("document.querySelectorAll('svg.sankey .ribbon').length") > 1


def test_axe_finds_what_is_wrong(site, browser):
    """The check itself can fail."""
    browser.visit(f"{site}/quality")
    browser.evaluate("document.querySelector('label[for=network]').remove()")
    assert any(one.startswith("select-name") for one in violations(browser))


VERDICT = """
(async () => {
  document.getElementById('verify').click();
  const verdict = document.getElementById('verdict');
  while (!/holds|does not|cannot/.test(verdict.textContent)) await new Promise(done => setTimeout(done, 20));
  const texts = chosen => [...document.querySelectorAll(chosen)].map(one => one.innerText);
  return {text: verdict.textContent, steps: texts('#steps li'), marks: texts('#steps .pill')};
})()
"""
TAMPER = """
const answer = window.fetch;
window.fetch = async (...asked) => {
  const proof = await (await answer(...asked)).json();
  const flip = text => (text[9] === '0' ? '1' : '0');
  proof.message = proof.message.slice(0, 9) + flip(proof.message) + proof.message.slice(10);
  return new Response(JSON.stringify(proof), {status: 200});
};
"""


@pytest.fixture(params=["shimmer", "iota"])
def message(request, pages):
    """The path of a message's page, of each protocol."""
    return pages[f"message-{request.param}"]


def test_the_verify_button_checks_every_step(site, browser, message):
    visit = browser.visit(site + message)
    assert browser.evaluate("getComputedStyle(document.getElementById('verify')).display") != "none"
    found = browser.evaluate(VERDICT)
    assert found["text"] == "The proof holds."
    assert set(found["marks"]) == {"✓"}
    assert "RFC 7693" in found["steps"][0]
    assert message.rpartition("/")[2] in found["steps"][1]
    assert "signatures hold" in found["steps"][-1]
    assert violations(browser) == []
    assert visit.console == []
    assert all(url.startswith((site, "data:")) for url in visit.requests)


def test_a_tampered_proof_shows_failure(site, browser, message):
    browser.visit(site + message)
    browser.evaluate(TAMPER)
    found = browser.evaluate(VERDICT)
    assert found["text"].startswith("The proof does not hold.")
    assert found["marks"] == ["✓", "✗"]
    assert violations(browser) == []


INLINE = """
document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.hit = 1">');
document.head.appendChild(Object.assign(document.createElement('script'), {text: 'window.hit = 1'}));
true
"""


def test_the_policy_stops_inline_scripts(site, browser, message):
    visit = browser.visit(site + message)
    browser.evaluate(INLINE)
    browser.evaluate("new Promise(done => setTimeout(done, 200))")
    assert browser.evaluate("window.hit") is None
    assert any("Content Security Policy" in line for line in visit.console)


def test_the_pages_work_by_keyboard(site, browser):
    browser.visit(f"{site}/")
    for kind in ("rawKeyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.evaluate("document.activeElement.className") == "skip"
    assert browser.evaluate("getComputedStyle(document.activeElement).left") == "8px"


def test_json_of_every_page_has_no_drawings(site, pages):
    for path in pages.values():
        sign = "&" if "?" in path else "?"
        answer = httpx.get(f"{site}{path}{sign}format=json", timeout=60)
        assert answer.headers["content-type"] == "application/json"
        assert "<svg" not in json.dumps(answer.json())


def test_a_machine_without_chromium_gets_one(monkeypatch):
    """The browser that npm brings starts with its own libraries."""
    monkeypatch.delenv("PERMALAKE_CHROMIUM", raising=False)
    monkeypatch.setattr(chromium_binary.shutil, "which", lambda name: None)
    with started(chromium_binary.found()) as page:
        page.visit("data:text/html,<title>hello</title><p>seen")
        assert page.evaluate("document.title + document.body.innerText") == "helloseen"
