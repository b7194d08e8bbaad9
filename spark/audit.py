"""Job ``audit``: staged tables → verdict per day and Data Docs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

from pyspark.sql import SparkSession

from permalake.audit import docs
from permalake.audit.catalogue import laws_of
from permalake.audit.staged import scope_of
from permalake.config import load_settings
from permalake.contracts import tables_of
from permalake.errors import RefusedError
from permalake.lake import Lake
from permalake.pipeline import jobs
from permalake.spark.session import session

# Great Expectations takes as long to import as Spark to start: it begins with this job's own import.
RUNNER = ThreadPoolExecutor(1).submit(import_module, "permalake.audit.runner")


def main(argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
    job = jobs.arguments("audit", argv)
    settings = load_settings()
    lake = Lake(settings)
    attempt = lake.resume(job.network, job.run_id)
    attempt.pin()
    days = attempt.days_with_rows()
    if not days:
        jobs.say(f"audit {job}: no rows to judge")
        return
    spark = spark or session(f"audit {job}")
    folder = docs.folder(job.network, attempt.id)
    tables = tables_of(job.network)
    scope = scope_of(spark, settings, lake, attempt, tables)
    auditor = RUNNER.result().Auditor(spark, tables.values(), laws_of(job.network), folder)
    report = auditor.run(scope, days)
    page = docs.write(report, folder, title=str(job), run_id=job.run_id)
    for day in days:
        failures = report.failures(day)
        attempt.verdict(day, not failures, failures)
    for finding in (*report.failed, *report.warnings):
        jobs.say(f"audit {job}: {finding.severity}: {finding.line()}")
    jobs.say(f"audit {job}: {len(report.passed)} of {len(days)} days passed; docs: {page}")
    if not report.passed:
        raise RefusedError(f"audit of {job} failed: {report.summary()}; docs: {page}")


if __name__ == "__main__":
    jobs.run(main)
