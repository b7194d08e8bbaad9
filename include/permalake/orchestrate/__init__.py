"""Airflow: what the DAG files are made of, the environment they run in, and a run without a scheduler."""
