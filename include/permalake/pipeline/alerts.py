"""Tells whoever is configured in ``[alerts]`` that a step failed for good, or that a day is late."""

from __future__ import annotations

import logging
import smtplib
import ssl
from email.message import EmailMessage
from typing import Any

from permalake.config import AlertsSettings, load_settings
from permalake.contracts.steps import Step, StepResult
from permalake.errors import PermalakeError
from permalake.pipeline.request import BuildRequest

log = logging.getLogger(__name__)
TIMEOUT = 10
_FAILED = "{dag} {network} {day}: {step} failed: {reason} {link} {docs}"
_LATE = "{dag} {network} {day}: {reason} {link}"

Alert = dict[str, str]


def failed(request: BuildRequest, step: Step, result: StepResult) -> Alert:
    """Return the alert of a run from the command line that failed at ``step``; ``docs`` is a path."""
    return alert_of(
        event="failed",
        dag=request.domain.dag_id,
        run=request.dag_run,
        network=request.network,
        day=request.days,
        step=step.name,
        reason=result.reason or result.failure,
        link="",
        docs=result.docs or "",
    )


def alert_of(**facts: str) -> Alert:
    """Return an alert: its facts, and all of them as one line of text."""
    form = _LATE if facts["event"] == "late" else _FAILED
    return {"text": " ".join(form.format(**facts).split()), **facts}


def send(alert: Alert) -> None:
    """To every configured target. What cannot be sent is a line in the log, and does not stop the others."""
    try:
        settings = load_settings().alerts
    except PermalakeError as error:
        log.warning("the alert could not be sent: %s", error)
        return
    targets: list[tuple[str, Any]] = []
    if webhook := settings.webhook:
        targets.append(("webhook", lambda: _post(webhook.get_secret_value(), alert)))
    if settings.smtp_host and settings.mail_to:
        targets.append(("mail", lambda: _mail(settings, alert)))
    for name, deliver in targets:
        try:
            deliver()
        except Exception as error:  # noqa: BLE001 - an alert that fails must not hide the failure it reports
            log.warning("the alert could not be sent by %s: %s", name, _discreet(error))


def _discreet(error: Exception) -> str:
    """Why, without the address: that of a webhook is a secret."""
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        return f"it answered {error.response.status_code}"
    if isinstance(error, httpx.HTTPError | httpx.InvalidURL):  # their texts quote the address
        return type(error).__name__
    return f"{type(error).__name__}: {error}"


def _post(url: str, alert: Alert) -> None:
    import httpx

    httpx.post(url, json=alert, timeout=TIMEOUT).raise_for_status()


def _mail(settings: AlertsSettings, alert: Alert) -> None:
    message = EmailMessage()
    what = "is late" if alert["event"] == "late" else f"{alert['step']} failed"
    message["Subject"] = " ".join(f"{alert['dag']} {alert['network']} {alert['day']}: {what}".split())
    message["From"] = settings.mail_from or "permalake@localhost"
    message["To"] = ", ".join(settings.mail_to)
    message.set_content("\n".join(f"{name}: {value}" for name, value in alert.items() if value))
    with smtplib.SMTP(settings.smtp_host or "", settings.smtp_port, timeout=TIMEOUT) as server:
        if settings.smtp_user and settings.smtp_password:
            server.starttls(context=ssl.create_default_context())
            server.login(settings.smtp_user, settings.smtp_password.get_secret_value())
        server.send_message(message)
