"""Spark on Kubernetes: manifests are valid and agree with the image, whose entry point runs Spark's own pods.

No Kubernetes runs here. Spark talks to a stand-in of the API server, which starts each pod that it is sent
as a process, with the variables that the pod and the image give it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from permalake.local.services.daemon import LOOPBACK
from permalake.paths import ROOT
from permalake.spark import jars
from permalake.spark.submit import bin_folder, spark_conf
from support.kubernetes_server import kubernetes

VERSION = "1.33"
MANIFESTS = {
    one["kind"]: one
    for one in yaml.safe_load_all((ROOT / "docker/kubernetes/permalake.yaml").read_text("utf-8"))
}
DATA = MANIFESTS["ConfigMap"]["data"]
DEFAULTS = dict(line.split(None, 1) for line in DATA["spark-defaults.conf"].splitlines())
DRIVER = MANIFESTS["Job"]["spec"]["template"]["spec"]
SUM = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
def twice(batches):
    import permalake, pyarrow as pa
    for batch in batches:
        yield pa.record_batch([pa.array([2 * n for n in batch.column(0).to_pylist()])], ["n"])
print("sum", spark.range(10).mapInArrow(twice, "n long").groupBy().sum("n").first()[0])
"""


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_manifest_is_valid(kind) -> None:
    kubernetes_validate.validate(MANIFESTS[kind], VERSION, strict=True)


def test_what_is_no_manifest_is_found() -> None:
    """The check can fail."""
    broken = MANIFESTS["Service"] | {"spec": {"clusterIp": "None"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSION, strict=True)


def test_names_agree() -> None:
    """Of service account, service, ports, volumes, secrets, and with the image."""
    image = (ROOT / "docker" / "Dockerfile").read_text("utf-8")
    uid = int(re.search(r"useradd .*--uid (\d+)", image)[1])
    template = yaml.safe_load(DATA["executor.yaml"])
    assert {one["securityContext"]["runAsUser"] for one in (DRIVER, template["spec"])} == {uid}
    [driver], [executor] = DRIVER["containers"], template["spec"]["containers"]
    assert driver["image"] == DEFAULTS["spark.kubernetes.container.image"]
    account = MANIFESTS["ServiceAccount"]["metadata"]["name"]
    assert account == DRIVER["serviceAccountName"] == MANIFESTS["RoleBinding"]["subjects"][0]["name"]
    assert account == DEFAULTS["spark.kubernetes.authenticate.driver.serviceAccountName"]
    service, namespace = MANIFESTS["Service"], MANIFESTS["Namespace"]["metadata"]["name"]
    assert DEFAULTS["spark.driver.host"] == f"{service['metadata']['name']}.{namespace}.svc"
    ports = {one["name"]: str(one["port"]) for one in service["spec"]["ports"]}
    assert ports == {
        "driver": DEFAULTS["spark.driver.port"],
        "blocks": DEFAULTS["spark.driver.blockManager.port"],
    }
    assert service["spec"]["selector"] == MANIFESTS["Job"]["spec"]["template"]["metadata"]["labels"]
    mounts = {one["name"]: one["mountPath"] for one in driver["volumeMounts"]}
    variables = {one["name"]: one.get("value") for one in driver["env"]}
    assert variables["SPARK_CONF_DIR"] == mounts["spark"]
    assert DEFAULTS["spark.kubernetes.executor.podTemplateFile"] == f"{mounts['spark']}/executor.yaml"
    [home] = re.findall(r"PERMALAKE_HOME=(\S+)", image)
    assert home == mounts["home"] == executor["volumeMounts"][0]["mountPath"]
    secrets = {
        one["name"]: "{name}:{key}".format(**one["valueFrom"]["secretKeyRef"])
        for one in driver["env"]
        if "valueFrom" in one
    }
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        assert DEFAULTS[f"spark.kubernetes.executor.secretKeyRef.{name}"] == secrets[name]


@pytest.mark.long
def test_a_driver_gets_executors_as_pods_and_they_compute(tmp_path, monkeypatch) -> None:
    """With the settings of the manifests and of a submit, but for addresses and sizes."""
    home = tmp_path / "home"
    (home / "jars").mkdir(parents=True)
    template = tmp_path / "executor.yaml"
    template.write_text(DATA["executor.yaml"], "utf-8")
    with kubernetes(
        tmp_path,
        PERMALAKE_HOME=str(home),
        PYSPARK_PYTHON=sys.executable,
        JAVA_HOME=str(Path(jars.java()).resolve().parents[1]),
    ) as (address, host):
        monkeypatch.setenv("PERMALAKE_SPARK_MASTER", f"k8s://{address}")
        monkeypatch.setenv("PERMALAKE_SPARK_EXECUTOR_MEMORY", "512m")
        monkeypatch.setenv("PERMALAKE_JARS_ON_NODES", "true")
        conf = DEFAULTS | spark_conf()
        conf |= {
            "spark.kubernetes.executor.podTemplateFile": str(template),
            "spark.executor.instances": "1",
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.port": "0",
            "spark.driver.blockManager.port": "0",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        script = tmp_path / "sum.py"
        script.write_text(SUM, "utf-8")
        options = [f"--conf={name}={value}" for name, value in conf.items()]
        with (tmp_path / "driver.log").open("w") as log:
            done = subprocess.run(
                [str(bin_folder() / "spark-submit"), "--master", f"k8s://{address}", *options, str(script)],
                env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                timeout=240,
                check=False,
            )
        logs = "\n".join(file.read_text()[-3000:] for file in tmp_path.glob("*.log"))
        assert "sum 90" in done.stdout, logs
        [pod] = host.made["pods"].values()
    sent = {name: value for name, value in pod.items() if name != "status"}
    kubernetes_validate.validate(sent, VERSION, strict=True)
    assert pod["spec"]["securityContext"]["runAsUser"] == DRIVER["securityContext"]["runAsUser"]
    [container] = pod["spec"]["containers"]
    assert container["image"] == "permalake"
    assert "/var/lib/permalake" in {one["mountPath"] for one in container["volumeMounts"]}
    from_secrets = {one["name"] for one in container["env"] if "secretKeyRef" in one.get("valueFrom", {})}
    assert from_secrets == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
