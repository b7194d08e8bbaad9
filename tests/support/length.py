"""Whether the suite runs at full length, as ``make long`` does it.

``make test`` leaves out the tests that are marked ``long``; tests that are marked ``scaled`` ask here.
"""

from __future__ import annotations

import os

LONG = os.environ.get("PERMALAKE_TESTS") == "long"
