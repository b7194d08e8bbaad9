"""Table ``protocol_parameters``; from decoded rows in Arrow."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from permalake.iota.tables.decoded_columns import DecodedRows, shaped


def protocol_parameters(milestones: DecodedRows) -> pa.Table:
    """Return ``protocol_parameters``: what milestones announce (TIP-29)."""
    announcing = milestones.where(pc.is_valid(milestones["parameters"]))
    announced = announcing["parameters"]
    columns = announcing.milestone() | {
        "target_milestone_index": pc.struct_field(announced, "target_index"),
        "protocol_version": pc.struct_field(announced, "version"),
        "params": pc.struct_field(announced, "parameters"),
    }
    return shaped("protocol_parameters", columns, len(announcing))
