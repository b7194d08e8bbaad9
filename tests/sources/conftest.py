"""Sources are checked by the tables that follow from them: with the helpers of tests/transforms."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))
