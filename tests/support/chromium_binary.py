"""A Chromium for tests: the machine's own, else one from npm that needs no system libraries.

``PERMALAKE_CHROMIUM`` names another. The one from npm is built for x86-64 on Linux.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from support import npm

HERE = Path(__file__).parent / "web_tools"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIBRARIES = ("al2023", "swiftshader", "fonts")
FONTS = """<?xml version="1.0"?>
<fontconfig><dir>{folder}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>{folder}/cache</cachedir></fontconfig>
"""


@dataclass(frozen=True)
class ChromiumBinary:
    """A program, and what its environment needs."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)


def found() -> ChromiumBinary:
    """Return the Chromium to use; it is fetched where the machine has none."""
    chosen = os.environ.get("PERMALAKE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    return ChromiumBinary(Path(chosen)) if chosen else fetched()


def fetched() -> ChromiumBinary:
    """Return the Chromium of the npm package, unpacked once."""
    packed = npm.install(HERE) / "@sparticuz" / "chromium" / "bin"
    target = packed.parent / "unpacked"
    with (HERE / ".install.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (target / "ready").exists():
            _unpack(packed, target)
    libraries = os.pathsep.join(str(folder) for folder in (target / "lib", target))
    return ChromiumBinary(
        target / "chromium", {"LD_LIBRARY_PATH": libraries, "FONTCONFIG_FILE": str(target / "fonts.conf")}
    )


def _unpack(packed: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in ("chromium", *(f"{name}.tar" for name in LIBRARIES)):
        command = [npm.BIN / "node", HERE / "unpack.mjs", packed / f"{name}.br", target / name]
        subprocess.run(command, check=True, timeout=300)
        if name.endswith(".tar"):
            with tarfile.open(target / name) as archive:
                archive.extractall(target, filter="data")
    (target / "chromium").chmod(0o755)
    (target / "fonts.conf").write_text(FONTS.format(folder=target))
    (target / "ready").touch()
