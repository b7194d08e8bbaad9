"""Routes of the REST API over the Wormhole tables."""
