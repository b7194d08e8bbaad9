"""Publishing what the lake has published into Cassandra and Bigtable."""
