"""The Airflow plugin: Permalake's deadline, its pages, and one writer at a time for SQLite metadata."""

from airflow.plugins_manager import AirflowPlugin

from permalake.orchestrate.deadline import PublishedBy
from permalake.orchestrate.metadata_locks import middlewares
from permalake.orchestrate.plugin import calendar_view, pages


class PermalakePlugin(AirflowPlugin):
    """Permalake's extensions of Airflow."""

    name = "permalake"
    deadline_references = [PublishedBy]
    fastapi_apps = [pages()]
    fastapi_root_middlewares = middlewares()
    external_views = [calendar_view()]
