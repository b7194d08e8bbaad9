"""Errors with a message of one line that says what the user can do, each with the exit code of a command."""

from __future__ import annotations

import re

_AGAIN = "then run it again"
# What libraries, Java and the shell say of a machine at its limits, whoever meets it -> what the user can do.
_MISHAPS = tuple(
    (re.compile(pattern), advice)
    for pattern, advice in (
        (
            r"No space left on device|database or disk is full|Disk quota exceeded",
            "the disk is full; free space where the warehouse, PERMALAKE_HOME and the temporary files lie, "
            + _AGAIN,
        ),
        (
            r"Too many open files|unable to open shared memory object",
            f"the limit of open files is too low; raise it (ulimit -n 65536), {_AGAIN}",
        ),
        (
            r"Cannot allocate memory|MemoryError|OutOfMemory|Out of Memory Error|bad_alloc|"
            r"insufficient memory for the Java|Could not (reserve|allocate) |unable to create native thread|"
            r"can't start new thread|pthread_create failed|Not enough space",
            "memory ran out; raise its limit (ulimit -v, the container's), or lower "
            f"PERMALAKE_SPARK_DRIVER_MEMORY, {_AGAIN}",
        ),
        (
            r"Read-only file system|readonly database",
            "the warehouse, its catalog or PERMALAKE_HOME is read-only; make it writable for this user, "
            + _AGAIN,
        ),
        (r"\[[Ee]rrno 13\]", f"permission is denied; let this user read and write there, {_AGAIN}"),
        (r"database is locked", f"another process holds the catalog; wait for it or end it, {_AGAIN}"),
        (
            r"unable to open database file",
            f"the catalog's file cannot be opened; check that its folder exists and is writable, {_AGAIN}",
        ),
        (
            r"file is not a database|database disk image is malformed",
            "the catalog is damaged; restore its backup, or move it away and run `permalake restore`, see "
            "docs/runbooks/restore.md",
        ),
    )
)
_RAISED = re.compile(r"[A-Za-z_][\w.]*(: |$)")


class PermalakeError(Exception):
    """Error that the user can fix; another try may succeed. Exit code 1.

    ``pause``: the seconds for which a service asks to be left alone before that; 0: it asks for nothing.
    """

    exit_code = 1
    retryable = True
    """Whether another try may succeed."""

    def __init__(self, *parts: object, pause: float = 0.0) -> None:
        super().__init__(*parts)
        self.pause = pause


class ConfigError(PermalakeError):
    """Error in the configuration or an argument; the message names the key. Exit code 2."""

    exit_code = 2
    retryable = False


class InvalidInputError(PermalakeError):
    """Error in the input of a day: a retry over the same input cannot succeed. Exit code 2."""

    exit_code = 2
    retryable = False


class StoreUnavailableError(PermalakeError):
    """Raised when a store that the server reads does not answer; a later request may succeed (503)."""


class CatalogUnavailableError(PermalakeError):
    """Raised when the catalog is locked or does not answer; a later try may succeed."""


def error_of(exit_code: int, message: str) -> PermalakeError:
    """Return the error with which a command ends that passes on the exit code of another process."""
    return InvalidInputError(message) if exit_code == InvalidInputError.exit_code else PermalakeError(message)


def mishap_of(text: str) -> str | None:
    """Return what to do about the fault of the machine that an error's text tells of; None for any other."""
    return next((advice for pattern, advice in _MISHAPS if pattern.search(text)), None)


def line_of(error: Exception) -> str:
    """Return what an unforeseen error says on one line; of one in a Spark task, what went wrong there."""
    # A message may quote what is no UTF-8, and is stored and printed.
    text = str(error).encode(errors="backslashreplace").decode()
    name = type(error).__name__
    if advice := mishap_of(f"{name}: {text}"):
        place = getattr(error, "filename", None)
        return f"{advice} ({place})" if place else advice
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    traceback = next((n for n, line in enumerate(lines) if line.startswith("Traceback ")), len(lines))
    # The last line of a Python traceback that names an error: its message may go on below.
    raised = [line for line in lines[traceback:] if _RAISED.match(line)]
    if raised:
        return raised[-1]
    return f"{name}: {lines[0]}" if lines else name
