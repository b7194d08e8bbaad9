"""The two tables of PyIceberg's SQL catalog, as it defines them.

They are declared here so that reading a pointer does not load PyIceberg.
"""

from __future__ import annotations

from sqlalchemy import Column, MetaData, String, Table

metadata = MetaData()
_NAME, _PLACE = String(255), String(1000)

pointers = Table(
    "iceberg_tables",
    metadata,
    Column("catalog_name", _NAME, primary_key=True),
    Column("table_namespace", _NAME, primary_key=True),
    Column("table_name", _NAME, primary_key=True),
    Column("metadata_location", _PLACE),
    Column("previous_metadata_location", _PLACE),
    Column("iceberg_type", String(5)),
)

namespaces = Table(
    "iceberg_namespace_properties",
    metadata,
    Column("catalog_name", _NAME, primary_key=True),
    Column("namespace", _NAME, primary_key=True),
    Column("property_key", _NAME, primary_key=True),
    Column("property_value", _PLACE, nullable=False),
)
