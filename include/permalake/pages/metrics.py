"""``/metrics``: what a Prometheus server scrapes, of the API and of the pages in Airflow alike."""

from __future__ import annotations

import os
from collections import Counter as Counts
from collections.abc import Iterable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import State
from starlette.responses import Response

from permalake.domains import stores_of
from permalake.errors import PermalakeError
from permalake.lake.head_position import head_positions
from permalake.lake.serving import LakeReader
from permalake.lake.status import status
from permalake.pages.days import freshness, state_of
from permalake.stores.readers import StoreReaders
from permalake.web.answers import only

_OF_WORKERS = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client's own variable: with it, every process keeps its figures in files of that folder."""
_SECONDS = (0.002, 0.005, 0.01, 0.015, 0.025, 0.06, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)
router = APIRouter(tags=["service"])


class LakeMetrics(Collector):
    """Gauges of the days in the lake, by network; each has one meaning on every server.

    ``state`` is that of the application: its settings, and the catalog of the lake.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def collect(self) -> Iterable[Metric]:
        """Yield the gauges; without an answer of the catalog, only that it gives none."""
        up = GaugeMetricFamily("permalake_lake_up", "1 if the catalog answers, else 0.", value=1)
        latest = GaugeMetricFamily(
            "permalake_latest_published_day_timestamp_seconds",
            "End of the latest published day that is over.",
            labels=["network"],
        )
        fresh = GaugeMetricFamily(
            "permalake_freshness_seconds",
            "Time since the end of the latest published day that is over.",
            labels=["network"],
        )
        count = GaugeMetricFamily(
            "permalake_days", "Days that the lake knows of, by state.", labels=["network", "state"]
        )
        head = GaugeMetricFamily(
            "permalake_head_milestone", "Last milestone of the live head.", labels=["network"]
        )
        lag = GaugeMetricFamily(
            "permalake_head_lag_seconds",
            "Time since the live head's last milestone or message.",
            labels=["network"],
        )
        try:
            settings, database = self._state.settings, self._state.database
            days, heads = status(database), head_positions(database).values()
            stores = {day.network: [store.name for store in stores_of(settings, day.network)] for day in days}
            states = Counts((day.network, state_of(day, stores[day.network]).name) for day in days)
        except (PermalakeError, SQLAlchemyError):
            return [GaugeMetricFamily(up.name, up.documentation, value=0)]
        for each in freshness(days):
            latest.add_metric([each.network], each.end.timestamp())
            fresh.add_metric([each.network], each.seconds)
        for labels, number in sorted(states.items()):
            count.add_metric(labels, number)
        for network_head in heads:
            if network_head.index is not None:
                head.add_metric([network_head.network], network_head.index)
            lag.add_metric([network_head.network], network_head.lag())
        return [up, latest, fresh, count, head, lag]


class LakeRegistry:
    """The metrics of a server without requests of its own to count: :class:`LakeMetrics` alone."""

    def __init__(self, state: State) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(LakeMetrics(state))


class ApiMetrics(LakeRegistry):
    """With the counters of the API's application; the label ``route`` holds templates, never ids."""

    def __init__(self, state: State, reader: LakeReader, stores: StoreReaders) -> None:
        super().__init__(state)
        counted = self.registry
        if _OF_WORKERS in os.environ:
            # Every worker keeps its figures in files, and each shows the sum of all.
            counted = CollectorRegistry()
            MultiProcessCollector(self.registry)  # type: ignore[no-untyped-call]
        self.requests = Counter(
            "permalake_http_requests",
            "Answered requests.",
            ("route", "method", "status", "network"),
            registry=counted,
        )
        self.seconds = Histogram(
            "permalake_http_request_seconds",
            "Time to answer a request.",
            ("route", "network"),
            buckets=_SECONDS,
            registry=counted,
        )
        self.in_flight = Gauge(
            "permalake_http_in_flight",
            "Requests being answered.",
            registry=counted,
            multiprocess_mode="livesum",
        )
        self.rejected = Counter(
            "permalake_http_rejected", "Requests refused by a limit.", ("reason",), registry=counted
        )
        self.backend = Histogram(
            "permalake_backend_seconds",
            "Time of a query, waiting for a connection included.",
            ("backend", "query"),
            buckets=_SECONDS,
            registry=counted,
        )
        self.backend_errors = Counter(
            "permalake_backend_errors", "Failed queries.", ("backend", "kind"), registry=counted
        )
        self.waiting = Gauge(
            "permalake_lake_pool_waiting",
            "Requests waiting for a connection.",
            registry=counted,
            multiprocess_mode="livesum",
        )
        self._reader = reader
        reader.observe = partial(self._query, "lake")
        for name, store in stores.by_name.items():
            store.observe = partial(self._query, name)

    def of_requests(self, route: str, method: str, status: int, network: str) -> tuple[Counter, Histogram]:
        """Return the counter and the times of a route's requests."""
        if network:
            route = f"{route}/".replace(f"/{network}/", "/{network}/").rstrip("/")
        return self.requests.labels(route, method, str(status), network), self.seconds.labels(route, network)

    def _query(self, backend: str, tables: str, seconds: float, error: str | None) -> None:
        self.backend.labels(backend, tables).observe(seconds)
        self.waiting.set(self._reader.waiting)
        if error:
            self.backend_errors.labels(backend, error).inc()


@router.get("/freshness", include_in_schema=False)
def fresh(request: Request) -> list[dict[str, Any]]:
    """Return the latest published day of each network and the seconds since its end, as JSON."""
    return [
        {"network": newest.network, "latest": newest.latest.isoformat(), "age_seconds": newest.seconds}
        for newest in freshness(status(request.app.state.database))
    ]


@router.get("/metrics", response_class=Response, responses=only("text/plain"))
def metrics(request: Request) -> Response:
    """Return the metrics in Prometheus' text format."""
    collected: LakeRegistry = request.app.state.metrics
    return Response(generate_latest(collected.registry), media_type=CONTENT_TYPE_LATEST)
