"""``permalake serve``: the REST API over the published lake. It knows no domain by name."""
