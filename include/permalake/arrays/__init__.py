"""Bytes in columnar form: cursors, ragged arrays, hexadecimal text."""
