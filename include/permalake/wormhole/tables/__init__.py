"""From verified VAAs to the published tables."""
