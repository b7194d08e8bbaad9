"""The Airflow plugin: Permalake's deadline, runs and pages, and one writer at a time for SQLite metadata."""

from airflow.plugins_manager import AirflowPlugin

from permalake.orchestrate import run_notes
from permalake.orchestrate.deadline import PublishedBy
from permalake.orchestrate.metadata_locks import middlewares
from permalake.orchestrate.plugin import calendar_view, pages
from permalake.orchestrate.timetable import UtcDays


class PermalakePlugin(AirflowPlugin):
    """Permalake's extensions of Airflow."""

    name = "permalake"
    deadline_references = [PublishedBy]
    timetables = [UtcDays]
    listeners = [run_notes]
    fastapi_apps = [pages()]
    fastapi_root_middlewares = middlewares()
    external_views = [calendar_view()]
