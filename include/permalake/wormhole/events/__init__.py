"""The event store's rows in Bigtable."""
