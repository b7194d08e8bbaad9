"""A domain declares once what a day of it is: steps, tables, laws, stores and inputs.

DAGs, ``--only``, submits, status, lineage and docs follow from this declaration. It loads no Airflow, Spark
or lake, so that the command line can check a ``--only`` and Airflow can parse a DAG at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from permalake.config import Settings
from permalake.contracts import Table
from permalake.contracts.figures import DailyChart, HeadlineFigure, OpenRequests
from permalake.contracts.steps import SERVE, WAIT, DayInputs, Step
from permalake.contracts.views import LakeView
from permalake.errors import ConfigError
from permalake.stores.batch import Store

if TYPE_CHECKING:
    from permalake.audit.laws import Law
    from permalake.transparency.deep import Derivation
    from permalake.transparency.documents import Evidence
    from permalake.transparency.manifest import Rows
    from permalake.web.mount import Mount
    from permalake.web.numbers import CoinUnit

POOL = "permalake_builds"
"""Airflow's pool of the tasks that build days."""


def loaded(name: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` names, and load its module."""
    module, _, function = name.partition(":")
    target: Callable[..., Any] = getattr(import_module(module), function)
    return target


@dataclass(frozen=True)
class Domain:
    """One of the products that share the lake.

    ``namespace``: the lake namespace where the domain has exactly one; None where every configured network
    has its own. ``laws``: gives the laws across its tables, and loads PySpark; a law is judged with the table
    that it names. As ``module:function``: ``carry`` stages its carried tables
    (:mod:`permalake.pipeline.steps.carry`), ``evidence`` says how a day's input was verified
    (:mod:`permalake.transparency.manifest`), ``derivation`` derives its days again, and loads what builds
    them (:mod:`permalake.transparency.deep`), ``routes`` gives the routes of the REST API
    (:mod:`permalake.web.mount`) and is imported by the server alone.
    ``raw_tables``: the tables that hold the input's bytes. ``item_table``: the table with a row per item of a
    day; ``item_name``: what its rows are called, in the plural.
    ``networks``: the configured ones. ``choose``: the network of a run that may name one, else
    :class:`ConfigError`. ``analytics``: the tables and views that the REST API lists and exports, each with
    the columns that a request must name. ``head_tables``: the tables that live heads alone have. ``figures``
    and ``charts``: what the pages show of a network;
    ``open_requests``: what its days still wait for; ``explorer``: where, below its page, single items are
    searched; ``finds``: says whether that search finds a text (:mod:`permalake.api.pages`); ``coin``: the
    function that returns the coin of its amounts; ``live``: the one that opens what follows a network
    between its days (:mod:`permalake.pipeline.live`), ``check_live``: the one that refuses a source that does
    not grow, all four as ``module:function``.
    ``route_groups``: what OpenAPI says of the groups (tags) of its routes.
    """

    name: str
    steps: tuple[Step, ...]
    tables: Mapping[str, Table]
    views: tuple[LakeView, ...]
    laws: Callable[[], tuple[Law, ...]]
    carry: str
    raw_tables: tuple[str, ...]
    evidence: str
    derivation: str
    stores: tuple[Store, ...]
    networks: Callable[[Settings], tuple[str, ...]]
    choose: Callable[[Settings, str | None], str]
    inputs: Callable[[Settings, str], DayInputs]
    namespace: str | None = None
    routes: str | None = None
    analytics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    head_tables: Mapping[str, Table] = field(default_factory=dict)
    figures: tuple[HeadlineFigure, ...] = ()
    charts: tuple[DailyChart, ...] = ()
    open_requests: tuple[OpenRequests, ...] = ()
    item_table: str = ""
    item_name: str = ""
    explorer: str | None = None
    finds: str | None = None
    coin: str | None = None
    live: str | None = None
    check_live: str | None = None
    route_groups: Mapping[str, str] = field(default_factory=dict)

    def mounts(self, settings: Settings) -> tuple[Mount, ...]:
        """Return the routers of the REST API, which loads FastAPI."""
        if self.routes is None:
            return ()
        mounts: tuple[Mount, ...] = loaded(self.routes)(settings)
        return mounts

    def coin_of(self, settings: Settings, network: str) -> CoinUnit | None:
        """Return the coin of a network's amounts; None where it has none of its own."""
        if self.coin is None:
            return None
        coin: CoinUnit = loaded(self.coin)(settings, network)
        return coin

    def evidence_of(self, settings: Settings, network: str, rows: Rows) -> Evidence:
        """Return how the input of a day was verified, as JSON; ``rows`` returns the day's rows of a table."""
        evidence: Evidence = loaded(self.evidence)(settings, network, rows)
        return evidence

    def derivation_of(self, settings: Settings, network: str) -> Derivation:
        """Return what derives days of a network again from their raw bytes."""
        derivation: Derivation = loaded(self.derivation)(settings, network)
        return derivation

    @property
    def dag_id(self) -> str:
        """Name of the DAG that builds its days."""
        return f"{self.name}_daily"

    @property
    def phases(self) -> tuple[str, ...]:
        """Every phase in order, as ``--only`` takes them."""
        return tuple(phase for step in self.steps for phase in step.phases)

    def step(self, name: str) -> Step:
        """Return the step of that name, which the domain must have."""
        return next(step for step in self.steps if step.name == name)

    def step_of(self, phase: str) -> Step:
        """Return the step that holds ``phase`` (a step's name will do).

        Raises :class:`ConfigError` with the list of phases.
        """
        for step in self.steps:
            if phase == step.name or phase in step.phases:
                return step
        raise ConfigError(
            f"--only {phase}: {self.name} has no such step; choose one of {', '.join(self.phases)}"
        )

    def is_first(self, step: Step, only: str | None = None) -> bool:
        """Return whether a run begins with ``step``: the first one, or the one that ``only`` names."""
        return step == (self.steps[0] if only is None else self.step_of(only))

    def comes_before(self, step: Step, only: str | None) -> bool:
        """Return whether a run that starts at ``only`` leaves ``step`` as an earlier run left it."""
        return only is not None and self.steps.index(step) < self.steps.index(self.step_of(only))

    def chained(self, step: Step) -> tuple[Step, ...]:
        """Return the steps that one submit may run after ``step``: all but what the stores need."""
        later = self.steps[self.steps.index(step) + 1 :]
        return tuple(takewhile(lambda step: step.name not in (WAIT, SERVE), later))

    def configured_stores(self, settings: Settings) -> tuple[Store, ...]:
        """Return the stores that days of this domain are published into."""
        return tuple(store for store in self.stores if store.configured(settings))
