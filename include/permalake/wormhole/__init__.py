"""The Wormhole domain: VAAs become tables and an event store."""
