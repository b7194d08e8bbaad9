"""Execution of queries over the files of days."""
