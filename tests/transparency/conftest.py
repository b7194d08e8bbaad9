"""What tests of signed days share."""

from __future__ import annotations

import pytest

from permalake.transparency import keys
from support.signed_lakes import NAME, at_home


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with a signing key of its own."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        at_home(patch, folder)
        keys.create_key(NAME)
        yield folder
