"""Publishers and mirrors: lakes built by the command line, exports, and exports that lie under a good key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from permalake.cli.main import main
from permalake.local import run
from permalake.spark.submit import Submission, SubmitEnd
from permalake.transparency import keys
from permalake.transparency.digest import canonical_json, table_digest
from permalake.transparency.log import Entry, append, read_log
from permalake.transparency.places import FolderPlace
from support.jobs import job
from support.signed_lakes import at_home, public_key, table_of

Change = Callable[[pa.Table], pa.Table]


class Side:
    """A machine with a lake: a folder with its configuration, warehouse and keys.

    Of a mirror, ``url`` is its publisher, ``asked`` are the paths that it asked for.
    """

    url: str
    asked: list[str]

    def __init__(self, spark, folder: Path, patch: pytest.MonkeyPatch, sections: str) -> None:
        self.folder = folder
        self._spark, self._patch = spark, patch
        folder.mkdir(parents=True, exist_ok=True)
        self.config = folder / "permalake.toml"
        self.config.write_text(f'[lake]\nwarehouse = "{folder}/warehouse"\n\n{sections}')

    def call(self, *arguments: object) -> int:
        """Call the command line; submits run in this process."""
        patch = self._patch
        patch.setenv("PERMALAKE_CONFIG", str(self.config))
        patch.setenv("PERMALAKE_SPARK_EVENT_LOG", "")
        patch.setattr("permalake.paths.HOME", self.folder / "home")
        patch.setattr(run, "LOGS", self.folder / "logs")
        patch.setattr(run.submit, "run", self._submit)
        at_home(patch, self.folder / "home")
        with pytest.raises(SystemExit) as ended:
            main([str(one) for one in arguments])
        return int(ended.value.code or 0)

    def _submit(self, submission: Submission, log: Path, *_: object) -> SubmitEnd:
        try:
            job(submission.job)(list(submission.arguments), self._spark)
        except Exception as error:  # noqa: BLE001
            return SubmitEnd(getattr(error, "exit_code", 1), f"permalake: {error}")
        return SubmitEnd(0)

    def key(self) -> str:
        """The public key."""
        at_home(self._patch, self.folder / "home")
        return str(public_key())


def lying_export(export: Path, network: str, table: str, change: Change) -> None:
    """Change the first day's rows of a table in an export, and sign it anew as its publisher would."""
    place = FolderPlace(str(export))
    log = read_log(place, "log", [public_key()])
    (name, day), entry = next(one for one in sorted(log.latest.items()) if one[0][0] == network)
    manifest = json.loads((export / "log" / entry.path).read_bytes())
    said = manifest["tables"][table]
    old = f"data/{name}/{table}/{day}-{said['digest'][:16]}.parquet"
    rows = change(pq.read_table(export / old))
    made = table_digest(ds.dataset(rows), table_of(name, table)).document
    manifest["tables"][table] = {**made, "kind": said["kind"]}
    if table in manifest["raw"]:
        manifest["raw"][table] = made["digest"]
    manifest["publication"] += 1
    content = canonical_json(manifest)
    new = Entry(name, day, manifest["publication"], hashlib.sha256(content).hexdigest())
    place.write(f"log/{new.path}", content)
    path = f"data/{name}/{table}/{day}-{made['digest'][:16]}.parquet"
    pq.write_table(rows, export / path)
    listed = json.loads((export / "files.json").read_text())
    bytes_ = (export / path).read_bytes()
    facts = {"rows": len(rows), "bytes": len(bytes_), "sha256": hashlib.sha256(bytes_).hexdigest()}
    listed = [{**one, "path": path, **facts} if one["path"] == old else one for one in listed]
    (export / "files.json").write_text(json.dumps(listed))
    append(place, "log", log, [new], key=keys.signing_key(), origin=log.checkpoint.origin)


def digests(export: Path, key: object) -> dict[tuple[str, str, str], str]:
    """The digest of every table and day that an export's log signs, by network, date and table."""
    log = read_log(FolderPlace(str(export)), "log", [key])
    found = {}
    for (network, day), entry in log.latest.items():
        manifest = json.loads((export / "log" / entry.path).read_bytes())
        found |= {(network, day, name): said["digest"] for name, said in manifest["tables"].items()}
    return found
