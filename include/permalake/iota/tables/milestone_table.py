"""Table ``milestones``, which needs a whole day: any of its messages may carry a milestone."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from permalake.iota.cone.decoded import Row

MILESTONE_TABLE = f"""
WITH carriers AS (
    SELECT date, milestone_id, message_id, row_number() OVER (
        PARTITION BY date, milestone_id ORDER BY milestone_index, white_flag_index
    ) AS place
    FROM milestone_rows WHERE kind = {int(Row.BLOCK)}
)
SELECT one.milestone_index, lower(hex(coalesce(one.message_id, carriers.message_id))) AS message_id,
    one.timestamp, one.raw AS payload, lower(hex(one.milestone_id)) AS milestone_id, one.date
FROM milestone_rows AS one
LEFT JOIN carriers
    ON one.date = carriers.date AND one.milestone_id = carriers.milestone_id AND carriers.place = 1
WHERE one.kind = {int(Row.MILESTONE)}
"""
"""The query of the table, over the decoded rows of milestones and of the messages that carry one.

The message of a Stardust milestone is the first block of the same day that carries it.
"""

CARRIERS = f"""
SELECT date, lower(hex(milestone_id)) AS milestone_id, lower(hex(message_id)) AS message_id
FROM milestone_rows WHERE kind = {int(Row.BLOCK)} ORDER BY milestone_index, white_flag_index
"""
"""The query of the messages that carry a milestone, in order, over the same rows."""


def with_messages(milestones: pa.Table, carriers: Mapping[str, str]) -> pa.Table:
    """Return rows of the table, those without a message with the one that ``carriers`` has for them.

    ``carriers``: message id by milestone id, both hex.
    """
    at = pc.index_in(milestones["milestone_id"], pa.array(list(carriers), pa.string()))
    later = pa.array(list(carriers.values()), pa.string()).take(at.combine_chunks())
    column = milestones.schema.get_field_index("message_id")
    filled = pc.coalesce(milestones["message_id"], later)
    return milestones.set_column(column, milestones.schema.field(column), filled)
