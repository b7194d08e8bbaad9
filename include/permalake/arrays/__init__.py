"""Columns of bytes: reading, writing and hashing whole Arrow columns with NumPy."""
