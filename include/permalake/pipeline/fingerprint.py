"""A digest of everything that a day is built from, to tell whether a rebuild could differ."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import permalake
from permalake.config import Settings
from permalake.paths import REFERENCE
from permalake.pipeline.request import WORMHOLE


def fingerprint(settings: Settings, network: str) -> str | None:
    """SHA-256 (hex) over version, configuration and input files of a network.

    A file counts with its path below the source, its size and its modification time, so that nothing is
    read. None for a live source (a node, an API): what it would answer today is not known without asking.
    """
    if not _is_local(settings, network):
        return None
    digest = hashlib.sha256()
    for part in (permalake.__version__, _configuration(settings, network), *_listing(settings, network)):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _is_local(settings: Settings, network: str) -> bool:
    if network != WORMHOLE:
        return settings.network(network).source != "node"
    wormhole = settings.wormhole
    sources = (settings.prices, *settings.prices.fallback)
    asked = any(source.provider != "file" for source in sources)
    return wormhole is not None and wormhole.source == "files" and not asked


def _configuration(settings: Settings, network: str) -> str:
    if network != WORMHOLE:
        return settings.network(network).model_dump_json()
    sections = [settings.wormhole, settings.prices, *settings.chains.values()]
    return "\n".join(section.model_dump_json() for section in sections if section)


def _listing(settings: Settings, network: str) -> Iterator[str]:
    if network != WORMHOLE:
        section = settings.network(network)
        roots = [section.path, section.ledger.path if section.ledger else None]
    else:
        wormhole = settings.wormhole
        roots = [wormhole.path, wormhole.reference, wormhole.observations] if wormhole else []
        roots += [source.path for source in (settings.prices, *settings.prices.fallback)] + [REFERENCE]
    for number, root in enumerate(roots):
        if root is not None:
            yield from (f"{number}/{line}" for line in _files(root))


def _files(root: Path) -> Iterator[str]:
    if root.is_file():
        yield _line(root, root.name)
        return
    for folder, below, names in os.walk(root):
        below.sort()
        for name in sorted(names):
            file = Path(folder) / name
            yield _line(file, str(file.relative_to(root)))


def _line(file: Path, name: str) -> str:
    status = file.stat()
    return f"{name} {status.st_size} {status.st_mtime_ns}"
