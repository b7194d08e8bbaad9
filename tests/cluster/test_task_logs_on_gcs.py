"""Logs of tasks in a bucket of Google's, by the settings that docs/operating.md names."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from permalake.local.airflow_env import airflow_environment
from permalake.paths import ROOT
from support.gcs_server import BUCKET, gcs_server

pytestmark = pytest.mark.long

# What the supervisor of a task does when the task has ended, and the API server when somebody looks.
UPLOADED = """
import json
import sys
from pathlib import Path
from airflow.sdk.configuration import conf
from airflow.sdk.log import load_remote_log_handler

logs, name = Path(conf.get("logging", "base_log_folder")), "dag_id=iota_daily/run_id=manual/attempt=1.log"
(logs / name).parent.mkdir(parents=True)
handler = load_remote_log_handler()
for part in sys.argv[1:]:
    (logs / name).write_text(part)
    handler.upload(name, None)
sources, texts = handler.read(name, None)
print(json.dumps([type(handler).__name__, sources, texts]))
"""


@pytest.fixture(scope="module")
def documented():
    """The variables of the page, with their values."""
    text = (ROOT / "docs" / "operating.md").read_text("utf-8")
    return dict(re.findall(r"^export (AIRFLOW__LOGGING__\w+)=(\S+)", text, re.MULTILINE))


def test_a_task_s_log_lies_in_the_bucket_and_is_read_from_there(tmp_path, documented, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with gcs_server(tmp_path) as (variables, proxy):
        key = variables.pop("GOOGLE_APPLICATION_CREDENTIALS")
        extra = {"key_path": key, "project": "a-project"}
        connection = {"conn_type": "google_cloud_platform", "extra": extra}
        settings = {name: value.replace("BUCKET", BUCKET) for name, value in documented.items()}
        assert len(settings) == 3
        environment = airflow_environment(database=tmp_path / "none.db", logs=tmp_path / "logs")
        # The proxy, which answers as Google does where the object is not there yet.
        address = f"http://127.0.0.1:{proxy.server_port}"
        environment |= settings | variables | {"STORAGE_EMULATOR_HOST": address}
        environment["AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT"] = json.dumps(connection)
        done = subprocess.run(
            [sys.executable, "-c", UPLOADED, "first try", "and more"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        handler, sources, texts = json.loads(done.stdout.splitlines()[-1])
    kept = f"gs://{BUCKET}/logs/dag_id=iota_daily/run_id=manual/attempt=1.log"
    assert (handler, sources, texts) == ("GCSRemoteLogIO", [kept], ["first try\nand more"])
    assert "Bearer a-token" in proxy.authorized
