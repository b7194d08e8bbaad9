"""Synthetic tangles and Wormhole worlds from a seed, in the formats of sources, with the rows they must give.

The command line, tests and benchmarks use this package. Nothing that builds or serves days does.
"""
