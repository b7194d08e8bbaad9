"""Prices and chain details from services outside the lake."""
