"""Errors that a user is meant to read: one line that says what to do."""

from __future__ import annotations


class PermalakeError(Exception):
    """Something went wrong that the user can mend; the message is one line. Exit code 1."""

    exit_code = 1


class ConfigError(PermalakeError):
    """The configuration or an argument is wrong; the message names the key. Exit code 2."""

    exit_code = 2


class RefusedError(PermalakeError):
    """The input of the days was looked at and refused; another try over it ends the same
    way. Exit code 3, of jobs alone: a command ends with 1."""

    exit_code = 3
