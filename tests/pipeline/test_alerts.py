"""What a log says of an alert that could not be sent."""

from __future__ import annotations

import httpx

from permalake.pipeline.alerts import discreet


def test_the_address_of_a_webhook_is_not_quoted() -> None:
    secret = "https://hooks.example.org/T0/s3cret"
    for error in (httpx.InvalidURL(f"Invalid port in {secret}"), httpx.ConnectError(f"no route to {secret}")):
        assert discreet(error) == type(error).__name__
