"""A stand-in for Kubernetes: an API server that keeps what it is given and starts each pod as a process."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from permalake.local.services.daemon import LOOPBACK
from permalake.paths import ROOT


class PodHost:
    """The pods and configurations that Spark made, and the processes of its pods.

    ``variables`` are those that the image sets; ``folder`` gets the output of each pod.
    """

    def __init__(self, folder, variables):
        self.made = {"pods": {}, "configmaps": {}}
        self.processes = []
        self._folder = folder
        self._variables = variables

    def make(self, kind, thing):
        """Keep a thing; start the container of a pod by the image's entry point."""
        name = thing["metadata"].get("name") or f"made-{len(self.made[kind])}"
        thing["metadata"] |= {"name": name, "uid": name, "resourceVersion": "1"}
        self.made[kind][name] = thing
        if kind == "pods":
            [container] = thing["spec"]["containers"]
            given = {one["name"]: self._value(one, thing) for one in container["env"]}
            thing["status"] = {"phase": "Running", "podIP": LOOPBACK}
            with (self._folder / f"{name}.log").open("w") as log:
                self.processes.append(
                    subprocess.Popen(
                        ["sh", str(ROOT / "docker" / "entrypoint.sh"), *container["args"]],
                        env=self._variables | given,
                        stdout=log,
                        stderr=log,
                        cwd=self._folder,
                    )
                )
        return thing

    def stop(self) -> None:
        """End the processes of all pods."""
        for one in self.processes:
            one.kill()
            one.wait()

    @staticmethod
    def _value(variable, pod):
        if "value" in variable or "valueFrom" not in variable:
            return variable.get("value", "")
        path = variable["valueFrom"].get("fieldRef", {}).get("fieldPath")
        known = {"status.podIP": LOOPBACK, "metadata.name": pod["metadata"]["name"]}
        return known[path] if path else "from a secret"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host):
        super().__init__((LOOPBACK, 0), _Api)
        self.host = host
        self.over = threading.Event()


class _Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self):
        kind = urlsplit(self.path).path.split("/")[5]
        if "Upgrade" in self.headers:
            # The client then watches by a plain answer without end.
            self._answer({})
        elif "watch=true" in self.path:
            # Nothing changes that Spark has not caused: no event comes.
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.server.over.wait()
            self.close_connection = True
        else:
            self._answer(
                {"kind": "List", "metadata": {}, "items": list(self.server.host.made[kind].values())}
            )

    def do_POST(self):
        kind = urlsplit(self.path).path.split("/")[5]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(self.server.host.make(kind, body), 201)

    def do_DELETE(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def do_PATCH(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        _, _, _, _, _, kind, name = urlsplit(self.path).path.split("/")
        self._answer(self.server.host.made[kind][name])

    def _answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def kubernetes(folder, **variables):
    """Run the stand-in; gives its address and the host of its pods."""
    server = _Server(PodHost(folder, {"PATH": os.environ["PATH"], **variables}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}", server.host
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        server.host.stop()
