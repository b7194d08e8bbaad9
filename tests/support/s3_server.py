"""A real S3-compatible server on a free port: versitygw, which docker-compose.yml uses too."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from permalake.local.services import golang
from permalake.local.services.control import LIBRARY
from permalake.local.services.daemon import LOOPBACK, Daemon, free_port
from permalake.paths import ROOT

(MODULE,) = re.findall(r"go install (\S*versitygw@\S+)", (ROOT / "docker" / "Dockerfile").read_text("utf-8"))
BUCKET = "lake"


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """The variables by which AWS's tools find the server, which has one bucket."""
    binary = LIBRARY / f"versitygw-{MODULE.rpartition('@')[2]}"
    if not binary.is_file():
        golang.install(MODULE, binary, "the S3 server")
    buckets = folder / "buckets"
    (buckets / BUCKET).mkdir(parents=True)
    port, access, secret = free_port(), uuid.uuid4().hex, uuid.uuid4().hex
    command = [str(binary), "--port", f"{LOOPBACK}:{port}", "--health", "/health", "posix", str(buckets)]

    def healthy() -> bool:
        try:
            return httpx.get(f"http://{LOOPBACK}:{port}/health", timeout=2).is_success
        except httpx.HTTPError:
            return False

    server = Daemon("s3", folder)
    server.start(command, port, healthy, 30, {"ROOT_ACCESS_KEY": access, "ROOT_SECRET_KEY": secret})
    try:
        yield {
            "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{port}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": access,
            "AWS_SECRET_ACCESS_KEY": secret,
        }
    finally:
        server.stop()
