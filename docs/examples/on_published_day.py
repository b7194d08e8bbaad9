"""An example of your own DAG: it runs whenever days of an IOTA network are published.

Copy it into a folder that your Airflow reads. There is an event per day (of a long range one for several),
whose extra says network and days; the tables are read with DuckDB, without Spark, as readers see them.
"""

from datetime import timedelta

from airflow.sdk import DAG, Asset, task

with DAG(
    "on_published_day",
    description="Messages of every newly published day.",
    doc_md=__doc__,
    schedule=[Asset(name="iota_published_day", uri="permalake://published/iota")],
    default_args={"owner": "you", "retries": 1, "execution_timeout": timedelta(minutes=5)},
    dagrun_timeout=timedelta(hours=1),
    tags=["example"],
):

    @task
    def count_messages(triggering_asset_events=None) -> dict[str, int]:
        """Messages by network and day, as published."""
        from permalake.config import load_settings
        from permalake.domains import open_reader

        lake = open_reader(load_settings())
        found = {}
        for events in triggering_asset_events.values():
            for event in events:
                network = event.extra["network"]
                sql = f'select date, message_count from "{network}".daily_extended'
                for row in lake.query(sql).to_pylist():
                    if str(row["date"]) in event.extra["days"]:
                        found[f"{network} {row['date']}"] = row["message_count"]
        return found

    count_messages()
