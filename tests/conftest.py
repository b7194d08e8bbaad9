"""Fixtures that every test may use."""

from __future__ import annotations

import pytest

from permalake import jars
from permalake.session import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One real local Spark session with the lake's jars, for the whole run."""
    created = session(
        "permalake-tests",
        **{
            "spark.master": "local[2]",
            "spark.jars": jars.class_path(),
            "spark.driver.memory": "2g",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        },
    )
    created.sparkContext.setLogLevel("ERROR")
    yield created
    created.stop()
