"""What one process runs of the suite: a module, or several that share what is made anew in each process."""

from __future__ import annotations

from pathlib import PurePosixPath

from xdist.scheduler import LoadFileScheduling

TOGETHER = {
    # A Cassandra, and the lake whose rows it has.
    "cassandra": (
        "stores/test_api_backends.py",
        "stores/test_connector.py",
        "stores/test_serve.py",
        "iota/permanode/test_cassandra.py",
        "iota/steps/test_live_cassandra.py",
        "iota/rest/test_core_v1.py",
        "iota/rest/test_core_v2.py",
        "iota/rest/test_permanode.py",
    ),
    # A server in a process of its own, with its workers.
    "whole server": (
        "api/test_generated_client.py",
        "api/test_iceberg.py",
        "api/test_lenient_requests.py",
        "api/test_load.py",
        "api/test_openapi.py",
        "api/test_proxy.py",
    ),
    # Airflow, and the DAGs that it parses.
    "orchestrate": ("orchestrate",),
    # Lakes of each folder's own.
    "wormhole rest": ("wormhole/rest",),
    "analysts": ("analysts",),
}
"""Modules and folders by the unit that they belong to."""


def unit(module: str) -> str:
    """Return the unit of a test module, whose path begins with ``tests``; its own path where it is alone."""
    path = PurePosixPath(module)
    for name, members in TOGETHER.items():
        if any(path.is_relative_to(f"tests/{member}") for member in members):
            return name
    return module


class UnitScheduling(LoadFileScheduling):
    """Gives a process the next unit, where xdist gives it the next file."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(super()._split_scope(nodeid))
