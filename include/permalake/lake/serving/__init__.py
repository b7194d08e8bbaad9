"""Reading the lake for a server: many small queries over one published state, without Spark."""

from permalake.lake.serving.index import key_function
from permalake.lake.serving.pool import PoolBusyError, QueryTimeoutError
from permalake.lake.serving.reader import LakeQuery, LakeReader, has_lake
from permalake.lake.serving.snapshot import EVERYTHING, LakeSnapshot, Scan

__all__ = [
    "EVERYTHING",
    "LakeQuery",
    "LakeReader",
    "LakeSnapshot",
    "PoolBusyError",
    "QueryTimeoutError",
    "Scan",
    "has_lake",
    "key_function",
]
