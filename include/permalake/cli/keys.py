"""``permalake keys``: the key that signs the published days."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from permalake.config import load_settings
from permalake.errors import ConfigError

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def _keys() -> None:
    """Create and show the key that signs the published days.

    The private key lies in PERMALAKE_HOME/keys, outside the lake; make a backup of it, see
    docs/runbooks/signing-key.md.
    """


@app.command()
def create(
    name: Annotated[
        str,
        typer.Option(metavar="NAME", help="Name of the log: a domain of yours and a path tell who signs."),
    ],
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Create the key, sign every published day with it, and print the public key.

    From now on each publication is signed.

    Example: permalake keys create --name example.org/permalake
    """
    settings = load_settings(config)

    from permalake.domains import domain_of
    from permalake.lake.identity import open_database
    from permalake.transparency.keys import KEY_FILE, create_key
    from permalake.transparency.signing import sign_all

    database = open_database(settings)
    key = create_key(name)
    sys.stderr.write(f"the private key is in {KEY_FILE}; make a backup of it\n")
    entries = sign_all(settings, database, domain_of)
    days = len({(entry.network, entry.date) for entry in entries})
    sys.stderr.write(f"{days} published day{'s' * (days != 1)} signed\n")
    sys.stdout.write(f"{key.verifier}\n")


@app.command()
def show(
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,  # noqa: ARG001
) -> None:
    """Print the public key, by which others check a copy: permalake verify URL --key KEY.

    Example: permalake keys show
    """
    from permalake.transparency.keys import signing_key

    key = signing_key()
    if key is None:
        raise ConfigError("this machine has no key; `permalake keys create --name NAME` makes one")
    sys.stdout.write(f"{key.verifier}\n")
