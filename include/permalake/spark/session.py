"""The Spark session that every job and test uses."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# UTC everywhere: a date is the UTC date, on any machine.
CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.enabled": "true",
    # All that is ever lowered is hex; the tables that other letters need take a job two seconds to fill.
    "spark.sql.icu.caseMappings.enabled": "false",
    # Otherwise the caller is looked up, and passed to Java, at each operation on a column.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
}
SMALL_CONF = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""For small inputs, whose hundred queries do not live long enough to be compiled, or planned anew at each
stage."""

# PySpark asks Java for these, and for each function in them, whenever it makes a column; by their short names
# Java looks through all jars each time, package by package.
_OFTEN_CALLED = (
    "org.apache.spark.sql.functions",
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
)


def session(name: str, **conf: str) -> SparkSession:
    """Return the Spark session of this process.

    Under spark-submit master and jars are already set, and the submit's settings hold.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # under spark-submit, whose settings only its JVM knows
        SparkContext._ensure_initialized()  # noqa: SLF001 - PySpark has no other way
    builder, submitted_conf = SparkSession.builder.appName(name), SparkConf()
    for key, value in {**CONF, **conf}.items():
        if not submitted_conf.contains(key):
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _remember(spark.sparkContext._jvm)  # noqa: SLF001 - PySpark has no other way
    return spark


def _remember(view: Any) -> None:
    """Keep the Java classes of :data:`_OFTEN_CALLED`, and their functions, where PySpark looks for them."""
    from py4j.java_gateway import JavaClass, JavaMember

    class Remembered(JavaClass):  # type: ignore[misc]
        def __getattr__(self, name: str) -> Any:
            attribute = super().__getattr__(name)
            if isinstance(attribute, JavaMember):
                self.__dict__[name] = attribute
            return attribute

    for often in _OFTEN_CALLED:
        java_class = Remembered(often, view._gateway_client)  # noqa: SLF001
        view.__dict__.update({often: java_class, often.rpartition(".")[2]: java_class})
