"""Airflow's own API for tasks, where it runs in the process of a DAG run."""

from __future__ import annotations


def serve_one_version() -> None:
    """Leave out the translations for clients of earlier versions: their routes take five seconds to make.

    In this process the API has only the tasks of the same Airflow as clients.
    """
    from airflow.api_fastapi.execution_api import versions
    from airflow.api_fastapi.execution_api.routes import execution_api_router as router
    from cadwyn import HeadVersion, Version, VersionBundle
    from cadwyn.route_generation import _DELETED_ROUTE_TAG

    latest = versions.bundle.versions[0].value
    router.routes[:] = [one for one in router.routes if _DELETED_ROUTE_TAG not in getattr(one, "tags", ())]
    versions.bundle = VersionBundle(HeadVersion(), Version(latest))
