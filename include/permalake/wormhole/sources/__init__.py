"""Sources of VAAs: files, Wormholescan, guardians."""
