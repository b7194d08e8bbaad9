"""Routes of the REST API over the tables of an IOTA network, in the dialects of its nodes."""
