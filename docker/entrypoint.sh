#!/bin/sh
# The jars came with the image; the home folder is a volume that outlives it.
set -eu
if [ ! -e "$PERMALAKE_HOME/jars" ] || [ -L "$PERMALAKE_HOME/jars" ]; then
  ln -sfn /opt/permalake/.permalake/jars "$PERMALAKE_HOME/jars"
fi
exec "$@"
