"""Whether a part of Airflow beats, as the API server knows: ``python docker/healthy.py scheduler``.

``airflow jobs check`` tells the same, but takes seconds of a core each time.
"""

import json
import sys
import urllib.request

ADDRESS = "http://airflow-apiserver:8080/api/v2/monitor/health"

with urllib.request.urlopen(ADDRESS, timeout=10) as answer:
    sys.exit(json.load(answer)[sys.argv[1]]["status"] != "healthy")
