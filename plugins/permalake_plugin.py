"""What Airflow's own processes load of Permalake: its deadline, and its pages behind Airflow's login."""

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from permalake.orchestrate.deadline import PublishedBy
from permalake.orchestrate.plugin import calendar_view, pages


class PermalakePlugin(AirflowPlugin):
    """Registers with Airflow what lives in the library."""

    name = "permalake"
    deadline_references: ClassVar[list[Any]] = [PublishedBy]
    fastapi_apps: ClassVar[list[Any]] = [pages()]
    external_views: ClassVar[list[Any]] = [calendar_view()]
