"""Write the software bill of materials: every locked Python package and every jar, with digests.

``python tools/sbom.py FILE`` writes CycloneDX 1.6 JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import metadata, version
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from permalake.paths import ROOT
from permalake.spark import jars


def locked() -> dict[str, tuple[str, list[str]]]:
    """Return version and SHA-256 digests of every package in ``requirements.txt``, by canonical name."""
    packages: dict[str, tuple[str, list[str]]] = {}
    name = ""
    for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines():
        word = line.strip().removesuffix("\\").strip()
        if "==" in word and not line.startswith((" ", "#")):
            name, _, pinned = word.partition("==")
            name = name.partition("[")[0]
            packages[name] = (pinned, [])
        elif word.startswith("--hash=sha256:"):
            packages[name][1].append(word.removeprefix("--hash=sha256:"))
    return packages


def components() -> Iterator[Component]:
    """Yield a component for every Python package and every jar."""
    for name, (pinned, digests) in locked().items():
        yield _component(PackageURL("pypi", None, name, pinned), digests)
    listed = jars.digests()
    for coordinate in jars.EVERY:
        group, artifact, number = coordinate.split(":")
        yield _component(PackageURL("maven", group, artifact, number), [listed[jars.jar_name(coordinate)]])


def _component(purl: PackageURL, digests: list[str]) -> Component:
    """Return a library; a package's digests are those of all its distributions."""
    return Component(
        type=ComponentType.LIBRARY,
        group=purl.namespace,
        name=purl.name,
        version=purl.version,
        purl=purl,
        bom_ref=str(purl),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in digests],
    )


def bill() -> Bom:
    """Return the whole bill of materials."""
    bom = Bom(components=components())
    bom.metadata.component = Component(
        type=ComponentType.APPLICATION,
        name="permalake",
        version=version("permalake"),
        description=metadata("permalake")["Summary"],
    )
    bom.register_dependency(bom.metadata.component, bom.components)
    return bom


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(JsonV1Dot6(bill()).output_as_string(indent=2), "utf-8")
