"""Where VAAs come from: files, Wormholescan, guardians."""
