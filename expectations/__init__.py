"""Expectations of the lake's tables beyond their contracts: a suite per table, a module per topic.

Each module lists its suites in ``SUITES``. Rules that tables share stand in :mod:`expectations.common`.
"""
