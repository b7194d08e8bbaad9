"""An nginx for tests: the machine's own, else Debian's package, unpacked without installing it."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from permalake.local.services.daemon import free_port

_MAIN = """daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  include {folder}/site.conf;
}}
"""


@contextmanager
def nginx(site: str, folder: Path) -> Iterator[str]:
    """Run nginx with a ``site`` that has ``listen 80``; yields its address."""
    port = free_port()
    (folder / "site.conf").write_text(site.replace("listen 80", f"listen 127.0.0.1:{port}"))
    (folder / "nginx.conf").write_text(_MAIN.format(folder=folder))
    command = [_program(folder), "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"]
    with subprocess.Popen(command) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(address, process, folder)
            yield address
        finally:
            process.terminate()


def _program(folder: Path) -> Path:
    path = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin"
    if own := shutil.which("nginx") or shutil.which("nginx", path=path):
        return Path(own)
    places = [f"-oDir::State::Lists={folder}/lists", f"-oDir::Cache={folder}/cache"]
    for name in ("lists", "cache/archives"):
        (folder / name / "partial").mkdir(parents=True)
    for command in (["update"], ["download", "nginx"]):
        done = subprocess.run(
            ["apt-get", "-q", *places, *command],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"install nginx: {done.stderr}"
    (package,) = folder.glob("nginx_*.deb")
    subprocess.run(["dpkg", "-x", package, folder / "unpacked"], check=True, timeout=60)
    return folder / "unpacked" / "usr" / "sbin" / "nginx"


def _wait(address: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + 120
    while True:
        try:
            httpx.get(f"{address}/health")
        except httpx.TransportError:
            assert process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)
        else:
            return
