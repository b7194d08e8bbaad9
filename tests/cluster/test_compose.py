"""docker-compose.yml: what it promises, as far as it can be read without a Docker daemon."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib

import pytest
import yaml
from cryptography.fernet import Fernet
from sqlalchemy import make_url

from permalake.config import load_settings
from permalake.paths import ROOT
from permalake.pipeline.domain import POOL

TEXT = (ROOT / "docker-compose.yml").read_text("utf-8")
AIRFLOW = ("airflow-apiserver", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")
VARIABLE = re.compile(r"\$\{(\w+)(:[-?+])?([^}]*)\}")


@pytest.fixture(scope="module")
def secrets():
    """A fresh .env, as the script prints it."""
    script = ["sh", str(ROOT / "docker" / "secrets.sh")]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in printed.splitlines())


@pytest.fixture(scope="module")
def services(secrets):
    """The services with every variable filled in, as Compose does."""

    def value(match):
        name, kind, default = match.groups()
        return secrets[name] if kind == ":?" else default if kind == ":-" else ""

    return yaml.safe_load(VARIABLE.sub(value, TEXT))["services"]


def test_secrets_have_no_default_and_are_all_made_by_the_script(secrets) -> None:
    used = {name: kind for name, kind, _ in VARIABLE.findall(TEXT)}
    secret = {name for name in used if re.search("PASSWORD|SECRET|KEY", name)}
    assert {name for name, kind in used.items() if kind == ":?"} == secret == set(secrets)
    assert all(len(value) >= 16 for value in secrets.values())
    assert len(set(secrets.values())) == len(secrets)
    Fernet(secrets["AIRFLOW_FERNET_KEY"])


def test_every_service_that_stays_is_checked_and_waited_for(services) -> None:
    staying = {name for name, service in services.items() if service["restart"] != "no"}
    assert set(services) - staying == {"airflow-init", "sample"}
    for name in staying:
        assert services[name]["healthcheck"]["test"][0] == "CMD", name
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            stays = other in staying
            assert how["condition"] == ("service_healthy" if stays else "service_completed_successfully"), (
                name
            )


def test_nothing_is_open_to_other_machines(services) -> None:
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert len(published) == 3
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_all_parts_of_airflow_share_their_secrets(services) -> None:
    keys = ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__API__SECRET_KEY")
    for key in keys:
        assert len({services[name]["environment"][key] for name in AIRFLOW}) == 1
        assert services["airflow-apiserver"]["environment"][key]


def test_the_drivers_of_airflow_s_database_are_in_the_environment(services) -> None:
    url = make_url(services["airflow-scheduler"]["environment"]["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    for name in (url.drivername, "postgresql+asyncpg"):  # Airflow derives the second one itself
        url.set(drivername=name).get_dialect().import_dbapi()


def test_the_sample_is_left_out_beside_a_configuration_of_one_s_own(services) -> None:
    (variable,) = {name for name, kind, _ in VARIABLE.findall(TEXT) if kind == ":+"}
    assert variable == "PERMALAKE_CONFIG_FILE"
    assert services["sample"]["command"][-1].strip() == "exec python -m permalake.local.demo --quiet"


def test_every_part_gets_a_configuration_that_loads(services, monkeypatch) -> None:
    for name in ("airflow-scheduler", "spark-worker"):
        with monkeypatch.context() as patched:
            for variable in [known for known in os.environ if known.startswith("PERMALAKE_")]:
                patched.delenv(variable)
            patched.setenv("PERMALAKE_CONFIG", str(ROOT / "permalake.toml"))
            for variable, value in services[name]["environment"].items():
                patched.setenv(variable, str(value))
            settings = load_settings()
        assert settings.lake.warehouse == "s3://lake/warehouse"
        assert settings.lake.catalog_uri.startswith("postgresql+psycopg2://lake:")
        assert settings.cassandra.contact_points == ("cassandra",)
        assert settings.bigtable.table
    master = services["airflow-scheduler"]["environment"]["PERMALAKE_SPARK_MASTER"]
    connection = json.loads(services["airflow-scheduler"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert connection["host"] == master == services["spark-worker"]["command"][-1]
    assert services["spark-worker"]["deploy"]["replicas"] >= 2


def test_what_users_set_by_environment_reaches_every_part_and_stays_theirs(services) -> None:
    """Variables that are not listed are dropped without a word: an API without its tokens answers all."""
    for name in (*AIRFLOW, "airflow-init", "api", "sample", "spark-worker"):
        assert services[name]["env_file"] == [{"path": "permalake.env", "required": False}], name
    assert "permalake.env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    sent = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert sent[0] == "*"
    assert "!permalake.env" not in sent


def test_files_and_targets_that_it_names_exist(services) -> None:
    targets = re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "docker" / "Dockerfile").read_text("utf-8"), re.M)
    for service in services.values():
        if "build" in service:
            assert service["build"]["target"] in targets
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert not source.startswith(".") or (ROOT / source).exists(), source
    for script in ("entrypoint.sh", "init.sh", "databases.sh", "secrets.sh"):
        assert os.access(ROOT / "docker" / script, os.X_OK)
        subprocess.run(["sh", "-n", str(ROOT / "docker" / script)], check=True)
    assert f"pools set {POOL} " in (ROOT / "docker" / "init.sh").read_text("utf-8")


def test_bases_and_images_of_others_are_pinned_by_digest(services) -> None:
    lines = (ROOT / "docker" / "Dockerfile").read_text("utf-8").splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    others = [service["image"] for service in services.values() if "build" not in service]
    assert len(bases) == 4
    assert len(others) == 2
    for image in (*bases, *others):
        assert re.fullmatch(r"[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}", image), image


def test_the_image_is_built_from_files_that_reach_the_builder() -> None:
    """.dockerignore names what does; a file that COPY names beside it would not be there."""
    kept = [line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()]
    copied = re.findall(
        r"^COPY --chown=permalake (.+) \S+$", (ROOT / "docker" / "Dockerfile").read_text(), re.M
    )
    for source in " ".join(copied).split():
        assert (ROOT / source).exists(), source
        assert source.split("/")[0] in kept, source
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(project["license-files"]) <= set(" ".join(copied).split())
