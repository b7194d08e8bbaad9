"""A day of Wormhole: its steps, tables, laws, stores and inputs, declared once."""

from __future__ import annotations

from permalake.config import Settings
from permalake.contracts.schema import DATE
from permalake.contracts.steps import Step
from permalake.errors import ConfigError
from permalake.pipeline.closing_steps import closing_steps
from permalake.pipeline.domain import Domain
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.figures import CHARTS, FIGURES, OPEN_REQUESTS
from permalake.wormhole.contracts.tables import NAMESPACE
from permalake.wormhole.contracts.views import VIEWS
from permalake.wormhole.contracts.waiting import HEAD_TABLES
from permalake.wormhole.events.store import BigtableStore
from permalake.wormhole.laws import laws
from permalake.wormhole.sources.inputs import wormhole_inputs

_ANALYTICS = (
    *("token_transfer_details", "chain_details"),
    *("notional_transferred_daily", "addresses_daily", "governor_usage_daily"),
    *("application_transfer_details", "applications_daily"),
)
_EVENTS = tuple(
    name for name, table in WORMHOLE_TABLES.items() if table.commit == "day" and name not in _ANALYTICS
)
_CARRIED = tuple(name for name, table in WORMHOLE_TABLES.items() if table.commit == "carried")
_DATED_VIEWS = tuple(view.name for view in VIEWS if DATE in view.columns and not view.live)
_STEPS = (
    Step(
        "ingest_decode",
        phases=("ingest", "decode"),
        run="permalake.wormhole.steps.ingest:run",
        job="wormhole_ingest",
        doc="Reads the VAAs, verifies every guardian signature, quarantines what fails with its reason, and "
        "stages messages and payloads.",
        writes=_EVENTS,
    ),
    Step(
        "enrich_analytics",
        phases=("enrich", "analytics"),
        run="permalake.wormhole.steps.enrich:run",
        job="wormhole_enrich",
        doc="Adds token metadata, the nearest price and chain details to transfers, then computes the daily "
        "analytics of the staged days.",
        writes=_ANALYTICS,
    ),
    *closing_steps("Bigtable", _CARRIED),
)


def _networks(settings: Settings) -> tuple[str, ...]:
    return (NAMESPACE,) if settings.wormhole else ()


def _choose(settings: Settings, network: str | None) -> str:
    if network not in (None, NAMESPACE):
        raise ConfigError(f"--network {network}: wormhole has one namespace, wormhole; leave --network out")
    wormhole_inputs(settings, NAMESPACE)
    return NAMESPACE


WORMHOLE = Domain(
    name="wormhole",
    steps=_STEPS,
    tables=WORMHOLE_TABLES,
    head_tables=HEAD_TABLES,
    views=VIEWS,
    laws=laws,
    carry="permalake.wormhole.steps.carry:stage",
    raw_tables=("quorum_state",),
    evidence="permalake.wormhole.evidence:evidence",
    derivation="permalake.wormhole.derivation:derivation",
    stores=(BigtableStore(),),
    networks=_networks,
    choose=_choose,
    inputs=wormhole_inputs,
    namespace=NAMESPACE,
    figures=FIGURES,
    charts=CHARTS,
    open_requests=OPEN_REQUESTS,
    item_table="message_publication",
    item_name="messages",
    routes="permalake.wormhole.rest.mounts:mounts",
    live="permalake.wormhole.steps.live:follow",
    check_live="permalake.wormhole.sources.inputs:check_live",
    finds="permalake.wormhole.rest.search:finds",
    analytics=dict.fromkeys(
        (*(name for name in WORMHOLE_TABLES if name.endswith("_daily")), *_DATED_VIEWS), ()
    ),
    route_groups={
        "wormhole": "Messages with all their rows, and daily figures from the lake's tables.",
        "wormholescan": "Wormholescan's API and the guardians': VAAs, operations, observations, figures.",
        "event database": "Wormhole's former event database: figures by chain and symbol, newest messages.",
    },
)
