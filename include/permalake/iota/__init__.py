"""The IOTA domain: milestones become the tables of a permanode."""
