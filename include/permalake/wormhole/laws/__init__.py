"""Laws across the tables of Wormhole."""
