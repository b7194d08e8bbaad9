"""The routers of both servers, to be included before those whose paths begin with a network."""

from permalake.pages.day import router as day
from permalake.pages.files import router as files
from permalake.pages.metrics import router as metrics
from permalake.pages.operations import router as operations
from permalake.pages.overview import router as overview
from permalake.pages.reasons import router as reasons

ROUTERS = (metrics, files, overview, day, operations, reasons)
