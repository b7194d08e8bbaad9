#!/bin/sh
# Run by the Postgres image when its volume is empty: one database and user for Airflow, one for the lake.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" \
  --set airflow="$AIRFLOW_DB_PASSWORD" --set lake="$LAKE_DB_PASSWORD" <<'SQL'
create role airflow login password :'airflow';
create database airflow owner airflow;
create role lake login password :'lake';
create database lake owner lake;
SQL
