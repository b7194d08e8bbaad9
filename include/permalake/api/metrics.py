"""``/metrics``: what a Prometheus server scrapes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
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
from prometheus_client.registry import Collector
from starlette.responses import Response

from permalake.lake.serving import LakeReader
from permalake.stores.readers import StoreReaders

_SECONDS = (0.002, 0.005, 0.01, 0.015, 0.025, 0.06, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)
router = APIRouter(tags=["service"])


class ApiMetrics:
    """Counters of one application; the label ``route`` holds templates, never ids."""

    def __init__(self, reader: LakeReader, stores: StoreReaders) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "permalake_http_requests",
            "Answered requests.",
            ("route", "method", "status", "network"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "permalake_http_request_seconds",
            "Time to answer a request.",
            ("route", "network"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.in_flight = Gauge("permalake_http_in_flight", "Requests being answered.", registry=self.registry)
        self.rejected = Counter(
            "permalake_http_rejected", "Requests refused by a limit.", ("reason",), registry=self.registry
        )
        self.backend = Histogram(
            "permalake_backend_seconds",
            "Time of a query, waiting for a connection included.",
            ("backend", "query"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.backend_errors = Counter(
            "permalake_backend_errors", "Failed queries.", ("backend", "kind"), registry=self.registry
        )
        self.registry.register(_LakeState(reader))
        reader.observe = partial(self._query, "lake")
        for name, store in stores.by_name.items():
            store.observe = partial(self._query, name)

    def _query(self, backend: str, tables: str, seconds: float, error: str | None) -> None:
        self.backend.labels(backend, tables).observe(seconds)
        if error:
            self.backend_errors.labels(backend, error).inc()


class _LakeState(Collector):
    """Gauges of the served state, by network."""

    def __init__(self, reader: LakeReader) -> None:
        self._reader = reader

    def collect(self) -> Iterable[Metric]:
        """Yield the gauges."""
        yield GaugeMetricFamily(
            "permalake_lake_pool_waiting", "Requests waiting for a connection.", value=self._reader.waiting
        )
        latest = GaugeMetricFamily(
            "permalake_latest_published_day_timestamp_seconds", "End of the last day.", labels=["network"]
        )
        fresh = GaugeMetricFamily(
            "permalake_freshness_seconds", "Time since the end of the last published day.", labels=["network"]
        )
        count = GaugeMetricFamily("permalake_days", "Published days.", labels=["network"])
        snapshot = self._reader.snapshot()
        for network in sorted(snapshot.networks()):
            names = (name for found, name in snapshot.tables if found == network)
            days = {day for name in names for day in snapshot.days(network, name)}
            if days:
                last = max(days)
                end = datetime(last.year, last.month, last.day, tzinfo=UTC).timestamp() + 86_400
                latest.add_metric([network], end)
                fresh.add_metric([network], time.time() - end)
            count.add_metric([network], len(days))
        yield from (latest, fresh, count)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(request: Request) -> Response:
    """Return the metrics in Prometheus' text format."""
    collected: ApiMetrics = request.app.state.metrics
    return Response(generate_latest(collected.registry), media_type=CONTENT_TYPE_LATEST)
