"""Prices and chain details from services."""
