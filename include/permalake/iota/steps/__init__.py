"""The steps of a day of an IOTA network."""
