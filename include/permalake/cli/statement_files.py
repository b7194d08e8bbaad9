"""An account statement as files: a page to print, and an archive with the proof of every message."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from permalake.cli.render import write
from permalake.contracts.rows import Row
from permalake.errors import PermalakeError
from permalake.sanitize import shown

MOST_ROWS = 100_000
"""Rows of a page; a statement of more is CSV."""
_TEMPLATE = "statement.html"
_NOT_WHOLE = "narrow it with --from and --to"


@dataclass(frozen=True)
class Statement:
    """An account statement: whose it is, of which days (None: all), and its rows as JSON values.

    ``ticker`` is None on Wormhole, whose rows are transfers of many tokens with their value in dollars.
    """

    network: str
    address: str
    first: str | None
    last: str | None
    ticker: str | None
    rows: Sequence[Row]

    @property
    def is_wormhole(self) -> bool:
        """Whether its rows are token transfers."""
        return self.ticker is None

    @property
    def totals(self) -> list[tuple[str, str]]:
        """What stands above the rows: sums, and how much they cover."""
        if not self.rows:
            return []
        return self._values() if self.is_wormhole else self._balances()

    def _balances(self) -> list[tuple[str, str]]:
        amounts = [Decimal(row["amount"]) for row in self.rows]
        gained = sum((amount for amount in amounts if amount > 0), Decimal(0))
        lost = sum((amount for amount in amounts if amount < 0), Decimal(0))
        last = Decimal(self.rows[-1]["balance"])
        return [
            ("Balance before the first row", f"{last - gained - lost:,f} {self.ticker}"),
            ("Gained", f"{gained:,f} {self.ticker}"),
            ("Lost", f"{lost:,f} {self.ticker}"),
            ("Balance after the last row", f"{last:,f} {self.ticker}"),
            ("Balances are at least these", f"since milestone {self.rows[0]['since_milestone']}"),
        ]

    def _values(self) -> list[tuple[str, str]]:
        values = []
        for side, label in (("sent", "Sent"), ("received", "Received")):
            of_side = [row for row in self.rows if row["side"] == side]
            notionals = [Decimal(row["notional_usd"]) for row in of_side if row["notional_usd"] is not None]
            worth = f"{sum(notionals, Decimal(0)):,.2f} USD; " if notionals else ""
            values += (
                [(label, f"{worth}{len(notionals)} of {len(of_side)} transfers have a value")]
                if of_side
                else []
            )
        return values


def write_page(statement: Statement, target: Path) -> None:
    """Write the statement as a page that stands alone: no script, nothing from elsewhere."""
    _write(target, "--html", lambda draft: draft.write_text(page(statement), "utf-8"))


def page(statement: Statement) -> str:
    """Return the statement as HTML."""
    return _template().render(statement=statement, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M}")


def write_archive(statement: Statement, proofs: dict[str, bytes], readme: str, target: Path) -> None:
    """Write a zip with the page, the rows as CSV, every proof by its name, and how to check them."""
    files = {
        "README.txt": readme.encode(),
        "statement.html": page(statement).encode(),
        "statement.csv": _csv(statement.rows).encode(),
        **{f"proofs/{name}": content for name, content in sorted(proofs.items())},
    }

    def fill(draft: Path) -> None:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)

    _write(target, "--proofs", fill)


def check_size(rows: Sequence[Row]) -> None:
    """Check that the rows are no more than a page holds.

    Raises:
        PermalakeError: if they are.
    """
    if len(rows) > MOST_ROWS:
        raise PermalakeError(f"the statement has more than {MOST_ROWS:,} rows; {_NOT_WHOLE}")


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    if rows:
        write(iter(rows), list(rows[0]), "csv", text, text)
    return text.getvalue()


def _write(target: Path, option: str, fill: Callable[[Path], Any]) -> None:
    """Write a file that appears when it is whole."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        fill(draft)
        draft.replace(target)
    except OSError as error:
        raise PermalakeError(f"{option} {target}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _template() -> Template:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = shown
    made.filters["number"] = lambda text: "" if text is None else f"{Decimal(text):,f}"
    made.filters["moment"] = lambda text: f"{text[:10]} {text[11:19]}" if text else ""
    return made.get_template(_TEMPLATE)
