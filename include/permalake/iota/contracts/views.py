"""Views of an IOTA network's tables."""

from __future__ import annotations

from permalake.contracts.calendar import calendars
from permalake.contracts.schema import BECH32, Column
from permalake.contracts.views import LakeView
from permalake.iota.contracts import analyst_views, live_views, permanode_views, running_views
from permalake.iota.contracts.measurements import CHRONICLE_MEASUREMENTS

_OWNERS = {
    "basic": "address",
    "alias": "state_controller",
    "foundry": "address",
    "nft": "address",
    "legacy": "address",
    "treasury": "NULL",
}


def _created() -> str:
    selects = (
        f"SELECT output_id, '{kind}' AS kind, {owner} AS address, amount, milestone_index, ms_timestamp, "  # noqa: S608
        f"data, date FROM {{network}}.{kind}_outputs"
        for kind, owner in _OWNERS.items()
    )
    return " UNION ALL ".join(selects)


UNSPENT_OUTPUTS = LakeView(
    "unspent_outputs",
    "iota",
    "Outputs unspent at the end of a day: unspent_outputs(DATE '…'), or unspent_outputs for the last one.",
    (
        Column("output_id", "string", "Id of the output (of a treasury output: its milestone id)."),
        Column("kind", "string", "Kind of the output.", values=tuple(_OWNERS)),
        Column(
            "address",
            "string",
            "bech32 of the owner as created: address unlock condition, an alias's state controller, a "
            "foundry's alias; null for the treasury.",
            required=False,
            pattern=BECH32,
        ),
        Column("amount", "long", "Amount in base tokens."),
        Column("milestone_index", "int", "Milestone that created it."),
        Column("ms_timestamp", "timestamptz", "Time of that milestone."),
        Column("data", "binary", "Raw bytes of the output."),
        Column("date", "date", "UTC date of that time."),
    ),
    (*(f"{kind}_outputs" for kind in _OWNERS), "consumed_outputs"),
    f"SELECT created.* FROM ({_created()}) AS created ANTI JOIN "  # noqa: S608
    "(SELECT output_id FROM {network}.consumed_outputs WHERE date <= CAST(as_of AS DATE)) AS consumed "
    "USING (output_id) WHERE date <= CAST(as_of AS DATE)",
    note="A join of what was created and consumed up to that day. It knows of outputs created on published "
    "days only, and reads them all: filter by date, kind or address where that will do.",
)
CALENDARS = calendars("date_cache")
VIEWS = (
    UNSPENT_OUTPUTS,
    CHRONICLE_MEASUREMENTS,
    *running_views.VIEWS,
    *permanode_views.VIEWS,
    *analyst_views.VIEWS,
    *live_views.VIEWS,
    *CALENDARS,
)
