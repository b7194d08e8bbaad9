"""Every page in a headless Chromium, in both themes, at 360, 768 and 1280 px: console, requests, axe-core."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match

from permalake.web.page_router import page_parameters
from support import chromium_binary
from support.browser import browser as started
from support.served_wormhole import FAR_CHAIN, FAR_EMITTER
from support.site_pages import THEMES, WIDTHS, faults, is_too_large, violations

HOSTILE = f"/wormhole/vaa/{FAR_CHAIN}/{FAR_EMITTER}/7"
MAY_SCROLL = {"sql", "table", "overview"}
"""Kinds of pages that show raw rows, or a matrix."""
HIDDEN = """
[...document.querySelectorAll('main td, main th, main dd, main a, main button, main input')].filter(one => {
  if (one.closest('thead, svg, details:not([open]), .matrix, .grid, .month')) return false;
  const {left, right, width} = one.getBoundingClientRect();
  return width > 0 && (left < -1 || right > innerWidth + 1);
}).map(one => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`).slice(0, 3)
"""


def test_every_page_is_accessible_asks_nobody_and_fits_a_phone(site, pages, browser) -> None:
    """Beyond the edge of a phone lies nothing that matters; pictures, matrices and raw data may scroll."""
    pages = {**pages, "hostile": HOSTILE}
    kinds = {name.split("-")[0] for name in pages}
    assert {
        "overview",
        "operations",
        "quality",
        "verify",
        "network",
        "explore",
        "milestone",
        "message",
    } <= kinds
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
    assert {"built", "alias", "nft", "foundry", "data", "tables", "table", "sql"} <= kinds
    assert {"messages", "corridors", "tokens", "corridor", "account", "guardian_set"} <= kinds
    assert {"changes", "nfts", "collection"} <= kinds
    wrong = {}
    for name, path in pages.items():
        visit = browser.visit(site + path)
        assert visit.requests, name
        found = ["too large"] if is_too_large(site, path) else []
        for theme in THEMES:
            for width in WIDTHS:
                browser.look(width=width, theme=theme)
                found += [f"{theme} {width}: {fault}" for fault in faults(browser, visit, site, theme, width)]
                if (theme, width) == ("light", 360) and name.split("-")[0] not in MAY_SCROLL:
                    found += [f"beyond the edge: {one}" for one in browser.evaluate(HIDDEN)]
        if found:
            wrong[name] = found
    assert wrong == {}


def test_themes_differ_and_no_page_is_blank(site, browser) -> None:
    colours = set()
    browser.visit(f"{site}/")
    for theme in THEMES:
        browser.look(width=1280, theme=theme)
        colours.add(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2
    assert browser.evaluate("document.body.innerText.length") > 200


def test_a_picture_of_flows_in_usd_is_one_click_behind_the_first_page(site, browser) -> None:
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


def test_axe_finds_what_is_wrong(site, browser) -> None:
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


def test_the_verify_button_checks_every_step(site, browser, message) -> None:
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


def test_a_tampered_proof_shows_failure(site, browser, message) -> None:
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


def test_the_policy_stops_inline_scripts(site, browser, message) -> None:
    visit = browser.visit(site + message)
    browser.evaluate(INLINE)
    browser.evaluate("new Promise(done => setTimeout(done, 200))")
    assert browser.evaluate("window.hit") is None
    assert any("Content Security Policy" in line for line in visit.console)


def test_the_pages_work_by_keyboard(site, browser) -> None:
    browser.visit(f"{site}/")
    for kind in ("rawKeyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.evaluate("document.activeElement.className") == "skip"
    assert browser.evaluate("getComputedStyle(document.activeElement).left") == "8px"


def test_json_of_every_page_has_no_drawings(site, pages) -> None:
    for path in pages.values():
        sign = "&" if "?" in path else "?"
        answer = httpx.get(f"{site}{path}{sign}format=json", timeout=60)
        assert answer.headers["content-type"] == "application/json"
        assert "<svg" not in json.dumps(answer.json())


def test_a_machine_without_chromium_gets_one(monkeypatch) -> None:
    """The browser that npm brings starts with its own libraries."""
    monkeypatch.delenv("PERMALAKE_CHROMIUM", raising=False)
    monkeypatch.setattr(chromium_binary.shutil, "which", lambda name: None)
    with started(chromium_binary.found()) as page:
        page.visit("data:text/html,<title>hello</title><p>seen")
        assert page.evaluate("document.title + document.body.innerText") == "helloseen"


def test_from_a_block_it_is_one_click_to_what_is_signed_of_its_day(site, pages, browser) -> None:
    browser.visit(site + pages["message-shimmer"])
    browser.look(width=1280, theme="light")
    browser.click("its day")
    text = browser.evaluate("document.body.innerText")
    assert "What is proven" in text
    assert "permalake verify --network shimmer --date" in text


def test_the_page_of_all_routes_follows_the_theme(site, browser) -> None:
    colours = {}
    browser.visit(f"{site}/docs")
    for theme in THEMES:
        browser.look(width=1280, theme=theme)
        browser.evaluate("new Promise(done => setTimeout(done, 200))")
        colours[theme] = browser.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert colours["dark"] != colours["light"]


CUT = """
[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1).length
"""


def test_print_has_whole_tables(site, pages, browser) -> None:
    browser.visit(site + pages["table-shimmer"])
    browser.look(width=1280, theme="light")
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.evaluate("getComputedStyle(document.querySelector('header.top')).display") == "none"
        assert browser.evaluate(CUT) == 0
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


SORT_BY = """
(() => {
  const choice = document.getElementById('sort');
  choice.value = %s;
  choice.form.requestSubmit();
})()
"""


def test_a_list_is_sorted_on_a_phone_without_heads(site, pages, browser) -> None:
    """The choice stands where the heads are hidden, and keeps what else the link says."""
    asked = {"start": "2000-01-01", "end": "2999-01-01", "sort": "-usd", "chain": "2"}
    browser.look(width=375, theme="light")
    browser.visit(f"{site}/wormhole/messages?{urlencode(asked)}")
    assert browser.evaluate("document.getElementById('sort').selectedOptions[0].text") == "USD, largest first"
    assert browser.evaluate("document.getElementById('sort').checkVisibility()")
    browser.submit(SORT_BY % "'time'")
    sent = dict(parse_qsl(browser.evaluate("location.search.slice(1)")))
    assert sent == {**asked, "sort": "time"}
    times = browser.evaluate("[...document.querySelectorAll('td.when')].map(one => one.innerText.slice(-19))")
    assert len(times) > 1
    assert times == sorted(times)
    browser.look(width=768, theme="light")
    assert not browser.evaluate("document.getElementById('sort').checkVisibility()")

    browser.look(width=375, theme="light")
    browser.visit(site + pages["collection-shimmer"])
    browser.submit(SORT_BY % "'-created'")
    assert browser.evaluate("location.search").endswith("sort=-created")


def test_links_and_forms_of_pages_ask_what_pages_know(site, pages, application) -> None:
    """The server refuses other parameters: no page may lead there."""
    routes = [one for one in application.routes if isinstance(one, APIRoute) and "pages" in one.tags]
    wrong, asked_somewhere = set(), set()
    for path in pages.values():
        links = _Links(path)
        links.feed(httpx.get(site + path, headers={"Accept": "text/html"}, timeout=60).text)
        for target, names in links.found:
            scope = {"type": "http", "method": "GET", "path": target, "root_path": ""}
            route = next((one for one in routes if one.matches(scope)[0] is Match.FULL), None)
            if route is None or "{path" in route.path:
                continue
            asked_somewhere |= names
            wrong |= {(path, target, name) for name in names - page_parameters(route)}
    assert wrong == set()
    assert {"q", "in", "start", "sort", "network", "day", "date", "sql", "publication"} <= asked_somewhere


class _Links(HTMLParser):
    """Reads path and names of parameters of every link and form of a page."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._base = path
        self._form: tuple[str, set[str]] | None = None
        self.found: list[tuple[str, set[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        if tag == "a" and not told.get("href", "").startswith("http"):
            target = urlsplit(urljoin(self._base, told.get("href", "")))
            self.found.append((unquote(target.path), {name for name, _ in parse_qsl(target.query, True)}))
        if tag == "form":
            self._form = (urlsplit(urljoin(self._base, told.get("action", ""))).path, set())
            self.found.append(self._form)
        if tag in {"input", "select", "textarea"} and "name" in told and self._form:
            self._form[1].add(told["name"])
