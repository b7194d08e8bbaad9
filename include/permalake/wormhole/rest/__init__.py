"""REST routes of Wormhole: the contract's own, Wormholescan's and the event database's.

Questions to the lake are SQL with bound parameters; a :class:`~permalake.wormhole.rest.rows.Rows` runs them.
"""
