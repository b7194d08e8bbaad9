"""``/metrics``: what a Prometheus server scrapes, of the API and of the pages in Airflow alike."""

from __future__ import annotations

import os
from collections import Counter as Counts
from collections.abc import Callable, Collection, Iterable
from functools import partial

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
from starlette.responses import Response

from permalake.errors import PermalakeError
from permalake.lake import DayStatus
from permalake.lake.serving import LakeReader
from permalake.pages.days import freshness, state_of
from permalake.stores.readers import StoreReaders

_OF_WORKERS = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client's own variable: with it, every process keeps its figures in files of that folder."""
_SECONDS = (0.002, 0.005, 0.01, 0.015, 0.025, 0.06, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)
router = APIRouter(tags=["service"])


class LakeMetrics(Collector):
    """Gauges of the days in the lake, by network; each has one meaning on every server.

    ``days`` reads every day that the lake knows of, ``stores`` names the stores configured for a network.
    """

    def __init__(
        self, days: Callable[[], Iterable[DayStatus]], stores: Callable[[str], Collection[str]]
    ) -> None:
        self._days = days
        self._stores = stores

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
        try:
            days = list(self._days())
            states = Counts((day.network, state_of(day, self._stores(day.network)).name) for day in days)
        except (PermalakeError, SQLAlchemyError):
            return [GaugeMetricFamily(up.name, up.documentation, value=0)]
        for each in freshness(days):
            latest.add_metric([each.network], each.end.timestamp())
            fresh.add_metric([each.network], each.seconds)
        for labels, number in sorted(states.items()):
            count.add_metric(labels, number)
        return [up, latest, fresh, count]


class LakeRegistry:
    """What a server without requests of its own to count has to say: :class:`LakeMetrics` alone."""

    def __init__(self, lake: LakeMetrics) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(lake)


class ApiMetrics(LakeRegistry):
    """With the counters of the API's application; the label ``route`` holds templates, never ids."""

    def __init__(self, lake: LakeMetrics, reader: LakeReader, stores: StoreReaders) -> None:
        super().__init__(lake)
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


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(request: Request) -> Response:
    """Return the metrics in Prometheus' text format."""
    collected: LakeRegistry = request.app.state.metrics
    return Response(generate_latest(collected.registry), media_type=CONTENT_TYPE_LATEST)
