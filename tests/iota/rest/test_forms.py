"""Forms of pages: each is answered when its fields are left empty, as browsers send them."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urljoin

import pytest

from support.iota_days import expected
from support.synthetic_lake import NETWORKS as PROTOCOLS

OWNED = {"stardust": "basic_outputs", "chrysalis": "legacy_outputs"}
PAGES = (
    *("/data", "/data/shimmer", "/data/shimmer/tags", "/data/sql"),
    *("/quality", "/quality/changes", "/verify", "/operations"),
)


class Forms(HTMLParser):
    """The forms of a page: the action of each, and what it sends with its fields emptied."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, dict[str, str]]] = []
        self._choice: str | None = None
        self._worded: str | None = None
        """The choice whose first option is its own value."""

    def handle_starttag(self, tag, attrs) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.sent.append((given.get("action", ""), {}))
        elif tag == "textarea" or (tag == "input" and "name" in given):
            self.sent[-1][1][given["name"]] = given["value"] if given.get("type") == "hidden" else ""
        elif tag == "select":
            self._choice = given["name"]
        elif tag == "option" and self._choice not in self.sent[-1][1]:
            if "value" in given:
                self.sent[-1][1][self._choice] = given["value"]
            else:
                self._worded = self._choice

    def handle_data(self, data) -> None:
        if self._worded:
            self.sent[-1][1].setdefault(self._worded, data)
            self._worded = None


def emptied(api, path):
    """What each form of a page sends when its fields are left empty."""
    answer = api.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    forms = Forms()
    forms.feed(answer.text)
    return forms.sent


@pytest.mark.parametrize("network", ["shimmer", "iota"])
def test_forms_of_a_network_may_be_left_empty(synthetic_api, network) -> None:
    protocol = PROTOCOLS[network]
    address = expected(protocol, OWNED[protocol])[-1]["address"]
    explore = f"/{network}/explore"
    lists = ["changes", "messages", *(["nfts"] if protocol == "stardust" else [])]
    pages = [explore, f"{explore}/address/{address}", *(f"{explore}/{name}" for name in lists)]
    for path in (f"/{network}", *pages):
        check(synthetic_api, path)


@pytest.mark.parametrize("path", PAGES)
def test_forms_of_a_page_may_be_left_empty(synthetic_api, path) -> None:
    check(synthetic_api, path)


def check(api, path) -> None:
    forms = emptied(api, path)
    assert forms, path
    for action, fields in forms:
        answer = api.get(urljoin(path, action), params=fields, headers={"Accept": "text/html"})
        assert answer.status_code == 200, (path, action, fields, answer.text)
