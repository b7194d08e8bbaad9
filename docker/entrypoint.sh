#!/bin/sh
# The jars came with the image; the home folder is a volume that outlives it.
set -eu
if [ ! -e "$PERMALAKE_HOME/jars" ] || [ -L "$PERMALAKE_HOME/jars" ]; then
  ln -sfn /opt/permalake/.permalake/jars "$PERMALAKE_HOME/jars"
fi
if [ "${1:-}" != executor ]; then
  exec "$@"
fi
# Spark on Kubernetes starts an executor so, and says in the environment what to start:
# org.apache.spark.deploy.k8s.features.BasicExecutorFeatureStep.
spark=$("$PYSPARK_PYTHON" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
IFS='
'
set -f
# shellcheck disable=SC2046  # one option a line
set -- $(env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p')
exec "$JAVA_HOME/bin/java" "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
  -cp "${SPARK_CONF_DIR:-}:$spark/jars/*:${SPARK_CLASSPATH:-}" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
