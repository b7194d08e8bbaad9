"""Alerts to the targets of ``[alerts]``: a step failed for good, or a day or head is late."""

from __future__ import annotations

import json
import logging
import smtplib
import ssl
from email.message import EmailMessage
from typing import Any

from permalake.config import load_settings
from permalake.config.alerts import AlertsSettings
from permalake.contracts.reason_codes import address, failure_codes
from permalake.contracts.steps import Step, StepResult
from permalake.errors import ConfigError, PermalakeError
from permalake.pipeline.request import BuildRequest

log = logging.getLogger(__name__)
TIMEOUT = 10
"""Seconds of a try."""
_TRIES = 3
_PAUSE = 0.5
"""Seconds before the second try; they double."""
_FAILED = "{dag} {network} {day}: {step} failed: {reason} {link} {docs} {runbook}"
_LATE = "{dag} {network} {day}: {reason} {link} {runbook}"
_LAGGING = "lagging"

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


def lagging(dag: str, run: str, network: str, day: str, seconds: float) -> Alert:
    """Return the alert of a live head that has been behind its source for too long."""
    reason = f"the live head is {seconds:.0f} s behind; does its source go on?"
    facts = {"dag": dag, "run": run, "network": network, "day": day, "step": "follow", "reason": reason}
    return alert_of(event=_LAGGING, link="", docs="", **facts)


def store_behind(dag: str, run: str, network: str, reason: str) -> None:
    """Send the alert of a store that has not taken a live head for too long."""
    facts = {"dag": dag, "run": run, "network": network, "day": "", "step": "follow", "reason": reason}
    send(alert_of(event=_LAGGING, link="", docs="", **facts))


def stopped(dag: str, run: str, network: str, day: str, reason: str) -> Alert:
    """Return the alert of a run from the command line that follows a network no more."""
    facts = {"dag": dag, "run": run, "network": network, "day": day, "step": "follow", "reason": reason}
    return alert_of(event="failed", link="", docs="", **facts)


def alert_of(**facts: str) -> Alert:
    """Return an alert: its facts, the place of its reason in the runbook, and all as one line of text."""
    is_late = facts["event"] == "late"
    codes = ("late",) if is_late else failure_codes(facts["reason"])
    facts |= {"runbook": " ".join(address(code) for code in codes)}
    form = _LATE if facts["event"] in {"late", _LAGGING} else _FAILED
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
        body = json.dumps(alert).encode()
        targets.append(("webhook", lambda: post(webhook.get_secret_value(), body, "application/json")))
    if settings.mail_to:
        targets.append(("mail", lambda: _mail(settings, alert)))
    for name, deliver in targets:
        try:
            deliver()
        except Exception as error:  # noqa: BLE001 - an alert that fails must not hide the failure it reports
            log.warning("the alert could not be sent by %s: %s", name, discreet(error))


def discreet(error: Exception) -> str:
    """Why, without the address: that of a webhook is a secret."""
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        return f"it answered {error.response.status_code}"
    if isinstance(error, httpx.HTTPError | httpx.InvalidURL):  # their texts quote the address
        return type(error).__name__
    if isinstance(error, PermalakeError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def post(url: str, body: bytes, content_type: str) -> None:
    """Send a body to a webhook; what may pass is tried again, all in all for half a minute at most.

    Raises:
        httpx.HTTPError: it did not take it. Its text may quote the address: see :func:`discreet`.
    """
    import httpx
    import tenacity

    from permalake.net.deadline import deadline, transports
    from permalake.net.http import TRANSIENT  # Its import also keeps addresses out of the log.

    def may_pass(error: BaseException) -> bool:
        if isinstance(error, httpx.HTTPStatusError):
            return error.response.status_code in TRANSIENT
        return isinstance(error, httpx.TransportError)

    tries = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_TRIES),
        wait=tenacity.wait_exponential(multiplier=_PAUSE),
        retry=tenacity.retry_if_exception(may_pass),
        reraise=True,
    )
    transport, mounts = transports(1)
    headers = {"content-type": content_type}
    with httpx.Client(transport=transport, mounts=mounts, timeout=TIMEOUT) as client:
        for attempt in tries:
            # The answer is not read: nobody needs it, and it may be long.
            with attempt, deadline(TIMEOUT), client.stream("POST", url, content=body, headers=headers) as got:
                got.raise_for_status()


def _mail(settings: AlertsSettings, alert: Alert) -> None:
    if settings.smtp_user and not settings.smtp_password:
        raise ConfigError(
            "alerts.smtp_user has no password, and mail is not sent without one; "
            "set PERMALAKE_ALERTS__SMTP_PASSWORD"
        )
    message = EmailMessage()
    words = {"late": "is late", _LAGGING: "lags behind"}
    what = words.get(alert["event"], f"{alert['step']} failed")
    message["Subject"] = " ".join(f"{alert['dag']} {alert['network']} {alert['day']}: {what}".split())
    message["From"] = settings.mail_from or "permalake@localhost"
    message["To"] = ", ".join(settings.mail_to)
    message.set_content("\n".join(f"{name}: {value}" for name, value in alert.items() if value))
    with smtplib.SMTP(settings.smtp_host or "", settings.smtp_port, timeout=TIMEOUT) as server:
        if settings.smtp_user and settings.smtp_password:
            server.starttls(context=ssl.create_default_context())
            server.login(settings.smtp_user, settings.smtp_password.get_secret_value())
        server.send_message(message)
