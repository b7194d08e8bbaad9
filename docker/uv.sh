#!/bin/sh
# Install uv as requirements.txt pins it, by its digest: sh docker/uv.sh PYTHON
set -eu
# The entry ends with the first line that no backslash continues.
entry=$(mktemp)
trap 'rm -f "$entry"' EXIT
sed -n '/^uv==/,/[^\\]$/p' requirements.txt > "$entry"
"$1" -m pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes --no-deps --requirement "$entry"
