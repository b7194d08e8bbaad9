"""A real YARN on this machine: Hadoop's own ResourceManager and NodeManagers in one Java process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from permalake.local.services.control import LIBRARY
from permalake.spark import jars

_SPARK_JARS = Path(pyspark.__file__).parent / "jars"
_HADOOP = next(_SPARK_JARS.glob("hadoop-client-api-*.jar")).stem.removeprefix("hadoop-client-api-")
# Hadoop's cluster for tests, and what Java no longer brings or Spark leaves out.
COORDINATES = (
    f"org.apache.hadoop:hadoop-client-minicluster:{_HADOOP}",
    "junit:junit:4.13.2",
    "org.bouncycastle:bcprov-jdk18on:1.78.1",
    "org.bouncycastle:bcpkix-jdk18on:1.78.1",
    "org.bouncycastle:bcutil-jdk18on:1.78.1",
    "javax.xml.bind:jaxb-api:2.3.1",
    "com.sun.xml.bind:jaxb-impl:2.3.1",
    "com.sun.xml.bind:jaxb-core:2.3.0.1",
    "javax.activation:activation:1.1.1",
)
_SETTINGS = {
    "yarn.nodemanager.hostname": "127.0.0.1",
    "yarn.nodemanager.resource.memory-mb": "4096",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
}


@contextmanager
def cluster(folder: Path, nodes: int = 2) -> Iterator[Path]:
    """Start YARN; give the folder with its clients' configuration (``HADOOP_CONF_DIR``)."""
    conf = folder / "conf"
    conf.mkdir(parents=True)
    with (folder / "yarn.log").open("w") as log:
        port, process = launch_gateway(
            classpath=_class_path(),
            jarpath=str(next(_SPARK_JARS.glob("py4j-*.jar"))),
            javaopts=["-XX:TieredStopAtLevel=1", "--add-opens", "java.base/java.lang=ALL-UNNAMED"],
            java_path=jars.java(),
            redirect_stdout=log,
            redirect_stderr=log,
            die_on_exit=True,
            return_proc=True,
            cwd=str(folder),
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        try:
            yarn = _start(gateway, nodes)
            (conf / "yarn-site.xml").write_text(_as_xml(gateway, yarn.getConfig()))
            yield conf
            yarn.stop()
        finally:
            gateway.close()
            process.stdin.close()
            process.wait(60)


def _start(gateway: JavaGateway, nodes: int):
    hadoop = gateway.jvm.org.apache.hadoop.yarn
    conf = hadoop.conf.YarnConfiguration()
    for name, value in _SETTINGS.items():
        conf.set(name, value)
    yarn = hadoop.server.MiniYARNCluster("permalake", nodes, 1, 1)
    yarn.init(conf)
    yarn.start()
    return yarn


def _as_xml(gateway: JavaGateway, conf) -> str:
    text = gateway.jvm.java.io.StringWriter()
    conf.writeXml(text)
    return text.toString()


def _class_path() -> str:
    library = LIBRARY / f"yarn-{_HADOOP}"
    library.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library) as scratch:
        for coordinate in COORDINATES:
            if not (library / jars.jar_name(coordinate)).is_file():
                jars.retrieve(coordinate, Path(scratch), "-notransitive")
                fetched = Path(scratch) / jars.jar_name(coordinate)
                fetched.rename(library / fetched.name)
    own = [str(library / jars.jar_name(coordinate)) for coordinate in COORDINATES]
    # Hadoop's own client first: the others hold parts of it too.
    spark = [str(next(_SPARK_JARS.glob(f"hadoop-client-{part}-*.jar"))) for part in ("api", "runtime")]
    return ":".join([*spark, *own, f"{_SPARK_JARS}/*"])
