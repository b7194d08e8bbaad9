"""Announces publications to the webhook of ``[alerts]``, as CloudEvents 1.0 in structured mode.

An event has what the feed has of the publication. It is delivered at least once: what the webhook did not
take goes out with the network's next publication, for a day. What another run is about to sign is left to it.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta

from sqlalchemy import RowMapping, select, update

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake.database import Database
from permalake.lake.identity import catalog_id
from permalake.lake.state import publications, stamp
from permalake.pipeline.alerts import discreet, post
from permalake.transparency.documents import FeedEntry
from permalake.transparency.feed import described, ready, tables_of
from permalake.transparency.manifest import KINDS_WITH_DAYS

log = logging.getLogger(__name__)
CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
TYPE = "permalake.publication"
LARGEST_EVENT = 2**20
"""Bytes of an event; a larger one has no ``days``, which the feed gives."""
_LATEST = timedelta(days=1)
_MOST = 100
"""Publications that are announced at once."""


def announce(settings: Settings, database: Database, network: str, run_id: str) -> list[str]:
    """Send an event for each publication of the network that is not announced yet; return lines for the log.

    ``run_id``: the run that has published and signed.

    It never fails: what is published stays published, and the next publication tries again.
    """
    alerts = settings.alerts
    if alerts.webhook is None or not alerts.publications:
        return []
    lines = []
    try:
        for number, body in _waiting(settings, database, network, run_id):
            post(alerts.webhook.get_secret_value(), body, CONTENT_TYPE)
            with database.write() as connection:
                connection.execute(
                    update(publications).where(publications.c.id == number).values(announced=1)
                )
            lines.append(f"told the webhook of publication {number}")
    except Exception as error:  # noqa: BLE001 - whatever it is, the days are published
        line = f"the webhook was not told of a publication of {network}: {discreet(error)}"
        log.warning("%s", line)
        lines.append(line)
    return lines


def _waiting(settings: Settings, database: Database, network: str, run_id: str) -> list[tuple[int, bytes]]:
    """Return the events that are due, oldest first, each with its publication's number."""
    query = select(publications).where(
        publications.c.network == network,
        publications.c.kind.in_(KINDS_WITH_DAYS),
        publications.c.announced.is_(None),
        publications.c.published_at >= stamp(datetime.now(UTC) - _LATEST),
    )
    with database.read() as connection:
        lake_id = catalog_id(connection)
        waiting = connection.execute(query.order_by(publications.c.id).limit(_MOST)).mappings().all()
        rows = ready(connection, waiting, run_id)
        tables = tables_of(connection, rows)
    if lake_id is None:
        raise PermalakeError("the catalog holds no lake id")
    entries = described(settings, rows, tables)
    return [(row["id"], _body(lake_id, row, entry)) for row, entry in zip(rows, entries, strict=True)]


def _body(lake_id: str, row: RowMapping, entry: FeedEntry) -> bytes:
    made = event(lake_id, row, entry)
    body = json.dumps(made).encode()
    if len(body) <= LARGEST_EVENT:
        return body
    return json.dumps(made | {"data": {**entry, "days": None}}).encode()


def event(lake_id: str, row: RowMapping, entry: FeedEntry) -> dict[str, object]:
    """Return a publication as a CloudEvent; ``entry`` is what the feed has of it.

    ``event`` and ``text`` are extension attributes: the alerts of the same webhook have them too.
    """
    start, end = str(row["start"]), str(row["end"])
    days = start if start == end else f"{start}..{end}"
    what = "carried" if row["kind"] != "days" else "published"
    return {
        "specversion": "1.0",
        "id": str(row["id"]),
        "source": f"urn:permalake:{lake_id}",
        "type": TYPE,
        "subject": f"{row['network']}/{days}",
        "time": row["published_at"],
        "datacontenttype": "application/json",
        "event": "published",
        "text": f"{row['network']} {days}: {what}, publication {row['id']}",
        "data": entry,
    }
