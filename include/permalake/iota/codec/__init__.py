"""Bytes of blocks, outputs and milestones as columns, and back."""
