"""Spark: sessions, submits, jars."""
