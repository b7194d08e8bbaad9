"""Helpers that several tests share; pytest puts the folder above on the import path."""
