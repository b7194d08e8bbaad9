"""The tables of IOTA networks."""
