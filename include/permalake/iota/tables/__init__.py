"""From proven rows to the published tables."""
