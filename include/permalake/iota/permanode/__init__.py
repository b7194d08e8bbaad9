"""The permanode's rows in Cassandra."""
