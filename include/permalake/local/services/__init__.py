"""Cassandra and the Bigtable emulator on this machine: fetched, started, watched and stopped."""
