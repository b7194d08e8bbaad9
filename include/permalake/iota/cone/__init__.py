"""From records to proven rows: cones in white-flag order, conflicts, ledger."""
