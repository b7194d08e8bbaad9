"""The Spark submit of a step: job, arguments and settings, as the size of its days wants them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from permalake.contracts.steps import SERVE, Step
from permalake.pipeline.fingerprint import fingerprint
from permalake.pipeline.request import BuildRequest
from permalake.pipeline.spark_settings import java_options, session_conf
from permalake.pipeline.workspace import Workspace
from permalake.spark import event_log, jars
from permalake.spark.submit import Submission, driver_memory, spark_conf
from permalake.stores import serve

LOG = logging.getLogger("permalake")


def submission(work: Workspace, request: BuildRequest, step: Step, then: Sequence[str]) -> Submission:
    """Return the submit of ``step``, which goes on with the steps ``then`` while the days are small."""
    arguments = request.arguments
    for name in then:
        arguments += ["--then", name]
    if step == work.domain.steps[0] and (digest := fingerprint(work.inputs)):
        arguments += ["--fingerprint", digest]
    own_log = event_log.folder(f"{request.network}_{request.days}_{step.name}")
    if own_log:
        LOG.info("Spark's own log, for its history server: %s", own_log)
    conf = {
        **spark_conf(_coordinates(work, step)),
        **session_conf(work.inputs),
        **event_log.conf(own_log),
        "spark.driver.memory": driver_memory(),
        "spark.driver.extraJavaOptions": java_options(work.inputs),
    }
    title = f"permalake {step.job} {request.network} {request.days}"
    return Submission(str(step.job), title, arguments, conf)


def _coordinates(work: Workspace, step: Step) -> tuple[str, ...]:
    """Return the Maven coordinates of what the job needs beside Spark; fetch those of the stores."""
    if step.name != SERVE:
        return jars.COORDINATES
    stores = work.domain.configured_stores(work.settings)
    due = serve.waiting(work.settings, work.network, stores)
    of_stores = tuple(jar for store in stores if store.name in due for jar in store.jars())
    jars.resolve(of_stores)
    return (*jars.COORDINATES, *of_stores)
