"""Synthetic tangles: valid down to signatures and Merkle roots, and never real."""
