"""Building a range of days: requests, jobs, fingerprints, stale days."""
