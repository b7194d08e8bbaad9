"""The synthetic days that operators' tests build: three, or ten with ``PERMALAKE_OPERATOR_DAYS=10``."""

from __future__ import annotations

import os
from datetime import date, timedelta

FIRST = date(2022, 9, 28)
DAYS = int(os.environ.get("PERMALAKE_OPERATOR_DAYS", "3"))
LAST = FIRST + timedelta(DAYS - 1)
