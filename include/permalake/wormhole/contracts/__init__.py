"""The tables of Wormhole."""
