"""Programs on this machine: Airflow, the demo, the stores' servers."""
