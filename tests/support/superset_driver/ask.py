"""Superset's way into a DuckDB file: lists schemas and columns, and runs statements; JSON on both sides."""

import json
import sys

import sqlalchemy

asked = json.load(sys.stdin)
engine = sqlalchemy.create_engine(asked["uri"], connect_args={"read_only": True})
inspector = sqlalchemy.inspect(engine)
with engine.connect() as connection:
    connection.exec_driver_sql("SET TimeZone = 'UTC'")
    rows = {name: connection.exec_driver_sql(sql).fetchall() for name, sql in asked["queries"].items()}
json.dump(
    {
        "schemas": inspector.get_schema_names(),
        "views": {name: inspector.get_view_names(schema=name) for name in asked["schemas"]},
        "columns": [one["name"] for one in inspector.get_columns(asked["table"], schema=asked["schemas"][0])],
        "rows": {name: [[str(value) for value in row] for row in found] for name, found in rows.items()},
    },
    sys.stdout,
)
