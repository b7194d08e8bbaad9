"""List every package and jar that is behind the newest release, each with the reason: ``make outdated``.

A package stays where an installed package bounds it, where a file of requirements pins it, or where the
resolver says what the newest release needs that is not to be had.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from permalake.paths import ROOT
from permalake.spark import jars

FILES = tuple(sorted(file.name for file in ROOT.glob("requirements*.in")))
UV = str(Path(sys.executable).parent / "uv")
_CONNECTOR = "the connector was built with it"
HELD_JARS = {
    **dict.fromkeys(jars.STORE_COORDINATES[2:], _CONNECTOR),
    **dict.fromkeys(jars.S3_COORDINATES[2:], "Iceberg's bundle has this SDK"),
    "org.apache.hadoop:hadoop-aws:3.4.2": "Spark has Hadoop 3.4.2",
}
"""Why a jar stays, by its coordinate; another one is free to move."""


class Behind(NamedTuple):
    """A package or jar that is not the newest."""

    name: str
    version: str
    latest: str
    reason: str


def pins() -> dict[str, str]:
    """Return the files of requirements that pin a package, by its canonical name."""
    pinned: dict[str, str] = {}
    for file in FILES:
        for line in (ROOT / file).read_text("utf-8").splitlines():
            if "==" in line and not line.startswith("#"):
                pinned[canonicalize_name(Requirement(line).name)] = file
    return pinned


def bounds(latest: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what installed packages say against the newest versions, by name.

    ``latest`` has the newest version by canonical name. An extra counts where anything asks for it.
    """
    asked: dict[str, set[str]] = defaultdict(lambda: {""})
    needs: list[tuple[str, Requirement]] = []
    for file in FILES:
        lines = (ROOT / file).read_text("utf-8").splitlines()
        needs += [("", Requirement(line)) for line in lines if line and not line.startswith(("#", "-"))]
    for package in distributions():
        needs += [(package.name, Requirement(text)) for text in package.requires or ()]
    for _, need in needs:
        asked[canonicalize_name(need.name)] |= need.extras
    against: dict[str, list[str]] = defaultdict(list)
    for owner, need in needs:
        name = canonicalize_name(need.name)
        if not owner or name not in latest or need.specifier.contains(latest[name], prereleases=True):
            continue
        extras = asked[canonicalize_name(owner)]
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras):
            against[name].append(f"{owner} needs {need.specifier}")
    return against


def resolver(name: str, latest: str) -> str | None:
    """Return what the resolver says against a newest version; None where it fits."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for file in FILES:
            text = (ROOT / file).read_text("utf-8")
            own = re.compile(rf"^({re.escape(name)}(\[.*\])?)==.*$", re.MULTILINE)
            (folder / file).write_text(own.sub(r"\1", text), "utf-8")
        (folder / "newest").write_text(f"{name}=={latest}\n", "utf-8")
        command = [UV, "pip", "compile", f"{folder / FILES[-1]}", "--constraint", f"{folder / 'newest'}"]
        command += ["--python-version", "3.11", "--output-file", f"{folder / 'lock'}", "--quiet"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    because = done.stderr.partition("Because ")[2].partition(", we can conclude")[0]
    return " ".join(because.split()) or done.stderr.strip().splitlines()[-1]


def packages() -> Iterator[Behind]:
    """Yield the packages of this environment that are behind."""
    command = [UV, "pip", "list", "--outdated", "--format", "json", "--python", sys.executable]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    # Pip came with the environment; the lock installs nothing by it.
    behind = {canonicalize_name(one["name"]): one for one in listed if one["name"] != "pip"}
    against = bounds({name: one["latest_version"] for name, one in behind.items()})
    pinned = pins()
    for name, one in behind.items():
        latest = one["latest_version"]
        reason = "; ".join(against.get(name, ())) or resolver(name, latest)
        if reason is None:
            reason = f"fits: raise it in {pinned[name]}" if name in pinned else "fits: run `make lock`"
        yield Behind(name, one["version"], latest, reason)


def newest_jars() -> dict[str, str]:
    """Return the newest version of every jar, by ``group:artifact``, from the metadata alone."""
    lines = []
    for coordinate in jars.EVERY:
        group, artifact, _ = coordinate.split(":")
        module = f"org={quoteattr(group)} name={quoteattr(artifact)}"
        lines.append(f"<dependency {module} rev='latest.release' conf='*->*'/>")
    with tempfile.TemporaryDirectory() as scratch:
        modules = Path(scratch) / "ivy.xml"
        modules.write_text(
            "<ivy-module version='2.0'><info organisation='permalake' module='jars'/>"
            f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
        )
        done = jars.ivy(Path(scratch), "-ivy", str(modules), "-notransitive", "-types", "none")
    resolved: list[tuple[str, str, str]] = re.findall(r"found (\S+)#([^;]+);(\S+) in ", done.stdout)
    return {f"{group}:{artifact}": version for group, artifact, version in resolved}


def behind_jars() -> Iterator[Behind]:
    """Yield the jars that are behind."""
    newest = newest_jars()
    for coordinate in jars.EVERY:
        name, _, version = coordinate.rpartition(":")
        if (latest := newest.get(name, version)) != version:
            reason = HELD_JARS.get(coordinate, "free: raise it in jars.py, with its digest in jars.sha256")
            yield Behind(name, version, latest, reason)


if __name__ == "__main__":
    for item in (*packages(), *behind_jars()):
        sys.stdout.write(f"{item.name} {item.version} -> {item.latest}: {item.reason}\n")
