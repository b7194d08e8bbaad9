"""Rows of a Cassandra table as plain values."""

from __future__ import annotations

from contextlib import ExitStack

from permalake.stores import cassandra

_SESSIONS = {}
"""Sessions by server and user: one that is opened anew costs more than what it is asked."""
_OPEN = ExitStack()


def held(settings, keyspace, name):
    """All rows of a table or view, each a dict of the columns that are not null."""
    rows = _session(settings).execute(f"SELECT * FROM {keyspace}.{name}")
    return [
        {
            field: plain(value)
            for field, value in zip(rows.column_names, row, strict=True)
            if value is not None
        }
        for row in rows
    ]


def close() -> None:
    """End all sessions; a server that stops would leave them looking for it."""
    _SESSIONS.clear()
    _OPEN.close()


def plain(value):
    return value.date() if hasattr(value, "days_from_epoch") else value


def as_set(rows):
    return {tuple(sorted(row.items())) for row in rows}


def _session(settings):
    server = settings.contact_points, settings.port, settings.username
    if server not in _SESSIONS:
        _SESSIONS[server] = _OPEN.enter_context(cassandra.session(settings, plain=True))
    return _SESSIONS[server]
