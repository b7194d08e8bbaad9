"""Errors with a message of one line that says what the user can do, each with the exit code of a command."""

from __future__ import annotations


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


def error_of(exit_code: int, message: str) -> PermalakeError:
    """Return the error with which a command ends that passes on the exit code of another process."""
    return InvalidInputError(message) if exit_code == InvalidInputError.exit_code else PermalakeError(message)
