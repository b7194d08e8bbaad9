"""The audit: Great Expectations decides whether a staged day is published."""

import os

# Set before the import: it would report its use over the network and wait for an answer.
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
