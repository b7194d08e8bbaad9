"""What a submit says of its Spark session holds against the library's own settings."""

import os
import subprocess

from permalake.spark import class_archive
from permalake.spark.session import CONF, SMALL_CONF
from permalake.spark.submit import bin_folder

ASK = """
import sys
from permalake.spark.session import session
spark = session("asked")
print(*(f"{name}={spark.conf.get(name)}" for name in sys.argv[1:]))
"""


def test_a_session_is_what_its_submit_was_told(tmp_path) -> None:
    """Seen: small days planned adaptively, in eight partitions, because nothing of it had arrived."""
    (tmp_path / "ask.py").write_text(ASK)
    told = {**SMALL_CONF, "spark.sql.session.timeZone": "Europe/Berlin"}
    own = "spark.sql.execution.arrow.pyspark.enabled"
    told["spark.sql.extensions"] = ""  # the lake's jars are not needed here
    options = [part for name, value in told.items() for part in ("--conf", f"{name}={value}")]
    options += ["--driver-class-path", class_archive.class_path(), "--driver-java-options"]
    options += [f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {class_archive.java_options()}"]
    done = subprocess.run(
        [bin_folder() / "spark-submit", "--master", "local[1]", *options, tmp_path / "ask.py", *told, own],
        env={**os.environ, "PATH": f"{bin_folder()}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert dict(pair.split("=", 1) for pair in done.stdout.split()) == {**told, own: CONF[own]}
    assert told.keys() & CONF.keys() >= {"spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"}
