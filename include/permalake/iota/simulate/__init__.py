"""Seeded synthetic worlds: tangles and VAAs that are valid down to signatures and roots, and never real."""
