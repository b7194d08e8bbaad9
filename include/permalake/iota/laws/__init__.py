"""Laws across the tables of an IOTA network."""
