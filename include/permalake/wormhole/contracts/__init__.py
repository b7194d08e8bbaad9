"""Contracts of the tables and views of Wormhole."""

from permalake.contracts import QUARANTINE, Table
from permalake.wormhole.contracts import application_tables, custody_tables, redemption_tables, tables

WORMHOLE_TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        *tables.TABLES,
        *application_tables.TABLES,
        *redemption_tables.TABLES,
        *custody_tables.TABLES,
        QUARANTINE,
    )
}
