"""Maintenance of the lake: compaction, expiry of the past, removal of needless files.

See ``docs/adr/0008-maintenance-beside-builds.md``.
"""
