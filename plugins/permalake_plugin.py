"""What Airflow's own processes load of Permalake: its deadline, its pages behind Airflow's login, and one
writer at a time where the metadata are in sqlite."""

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from permalake.orchestrate.deadline import PublishedBy
from permalake.orchestrate.metadata_locks import middlewares
from permalake.orchestrate.plugin import calendar_view, pages


class PermalakePlugin(AirflowPlugin):
    """Registers with Airflow what lives in the library."""

    name = "permalake"
    deadline_references: ClassVar[list[Any]] = [PublishedBy]
    fastapi_apps: ClassVar[list[Any]] = [pages()]
    fastapi_root_middlewares: ClassVar[list[Any]] = middlewares()
    external_views: ClassVar[list[Any]] = [calendar_view()]
