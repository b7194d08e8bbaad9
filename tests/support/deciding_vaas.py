"""What a task of the ingest does with the documents it is given, in this process."""

import datetime as dt

import pyarrow as pa
from pyspark.sql import DataFrame

from permalake.wormhole.tables.copies import distinct_vaas, of_days
from permalake.wormhole.tables.documents import deciding


def candidates(documents: DataFrame, start: dt.date, end: dt.date) -> pa.Table:
    """Return the VAAs that decide the days, dated."""
    return of_days(distinct_vaas(deciding(documents, start, end).toArrow()), start, end)
