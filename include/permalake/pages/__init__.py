"""Pages of days, runs and figures, for both servers. Access control is left to the server.

A server gives its routes, through ``app.state``: ``settings``, ``database`` (the catalog), ``sections`` (the
pages that every page leads to), ``metrics``, and as ``reader`` what reads the published rows, or None.
"""

from pathlib import Path

SITE = Path(__file__).parent / "site"
"""Templates of this package."""
