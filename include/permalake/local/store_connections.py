"""Airflow's connections to the stores, for a run without Airflow.

It is asked in a process of its own: Airflow takes seconds to load, and takes over the logging of its process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from permalake.config import load_settings
from permalake.domains import named
from permalake.errors import PermalakeError, error_of
from permalake.local.airflow_env import AIRFLOW_HOME, airflow_environment
from permalake.pipeline.domain import Domain


def store_settings(domain: Domain, log: Path) -> dict[str, str]:
    """Return what the connections add to the settings of the domain's stores, as their variables.

    Airflow's output goes to ``log``; the values come through a pipe.

    Raises:
        PermalakeError: A connection that is needed is missing or of the wrong kind.
    """
    with log.open("ab") as output:
        done = subprocess.run(
            [sys.executable, "-m", "permalake.local.store_connections", domain.name],
            env=airflow_environment(database=AIRFLOW_HOME / "airflow.db"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            check=False,
        )
    if done.returncode:
        raise PermalakeError("Airflow's connections cannot be read")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise error_of(answer["exit_code"], answer["error"])
    values: dict[str, str] = answer["values"]
    return values


def _answer(domain: Domain) -> dict[str, Any]:
    from permalake.orchestrate.connections import variables

    try:
        return {"values": variables(load_settings(), domain)}
    except PermalakeError as error:
        return {"error": str(error), "exit_code": error.exit_code}


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    json.dump(_answer(named(sys.argv[1])), answers)
    answers.close()
