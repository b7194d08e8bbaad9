"""The steps of a day of Wormhole."""
