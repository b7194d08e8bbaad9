"""Errors with a message of one line that says what the user can do, each with the exit code of a command."""

from __future__ import annotations

import re

_RAISED = re.compile(r"[A-Za-z_][\w.]*(: |$)")


class PermalakeError(Exception):
    """Error that the user can fix; another try may succeed. Exit code 1."""

    exit_code = 1
    retryable = True
    """Whether another try may succeed."""


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


def line_of(error: Exception) -> str:
    """Return what an unforeseen error says on one line; of one in a Spark task, what went wrong there."""
    # A message may quote what is no UTF-8, and is stored and printed.
    text = str(error).encode(errors="backslashreplace").decode()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    name = type(error).__name__
    traceback = next((n for n, line in enumerate(lines) if line.startswith("Traceback ")), len(lines))
    # The last line of a Python traceback that names an error: its message may go on below.
    raised = [line for line in lines[traceback:] if _RAISED.match(line)]
    if raised:
        return raised[-1]
    return f"{name}: {lines[0]}" if lines else name
