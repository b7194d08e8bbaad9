#!/bin/sh
# Prints a fresh .env for docker-compose.yml: sh docker/secrets.sh > .env
set -eu
umask 077
random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
# A Fernet key is 32 bytes in URL-safe base64.
fernet() { head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n'; }
for name in POSTGRES_PASSWORD AIRFLOW_DB_PASSWORD LAKE_DB_PASSWORD S3_SECRET_KEY AIRFLOW_JWT_SECRET AIRFLOW_API_SECRET; do
  echo "$name=$(random 24)"
done
echo "S3_ACCESS_KEY=$(random 10)"
echo "AIRFLOW_FERNET_KEY=$(fernet)"
echo "PERMALAKE_ADMIN_PASSWORD=$(random 8)"
