#!/bin/sh
# Once per start, before Airflow's parts: its database, the pool that bounds builds, the one user's password.
set -eu
airflow db migrate
airflow pools set permalake_builds "${PERMALAKE_BUILD_SLOTS:-2}" "Spark submits at the same time"
umask 077
mkdir -p "$PERMALAKE_HOME/airflow"
python -c 'import json, os, sys; json.dump({"admin": os.environ["PERMALAKE_ADMIN_PASSWORD"]}, sys.stdout)' \
  > "$PERMALAKE_HOME/airflow/passwords.json"
