#!/bin/sh
# Once per start, before Airflow's parts: its database, the pool that bounds builds, admin's password.
set -eu
airflow db migrate
airflow pools set permalake_builds "${PERMALAKE_BUILD_SLOTS:-2}" "Spark submits at the same time"
umask 077
mkdir -p "$PERMALAKE_HOME/airflow"
python - "$PERMALAKE_HOME/airflow/passwords.json" <<'END'
import json, os, pathlib, sys
file = pathlib.Path(sys.argv[1])
others = json.loads(file.read_text()) if file.exists() else {}
file.write_text(json.dumps(others | {"admin": os.environ["PERMALAKE_ADMIN_PASSWORD"]}))
END
