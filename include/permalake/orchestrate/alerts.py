"""Tells whoever is configured in ``[alerts]`` that a task failed for good."""

from __future__ import annotations

import logging
import smtplib
from email.message import EmailMessage
from typing import Any

from permalake.config import AlertsSettings, load_settings

log = logging.getLogger(__name__)
TIMEOUT = 10


def on_failure(context: Any) -> None:
    """Airflow calls this when a task has used up its retries. Never raises: an alert that cannot be sent is
    a line in the log."""
    alert = describe(context)
    log.error("%s", alert["text"])
    try:
        settings = load_settings().alerts
        if settings.webhook:
            _post(settings.webhook, alert)
        if settings.smtp_host and settings.mail_to:
            _mail(settings, alert)
    except Exception as error:
        log.warning("the alert could not be sent: %s", error)


def describe(context: Any) -> dict[str, str]:
    """DAG, run, day, step, reason and link of a failure, and all of it as one line of text."""
    instance = context["ti"]
    given = context.get("params") or {}
    interval = context.get("data_interval_start")
    facts = {
        "dag": str(instance.dag_id),
        "run": str(instance.run_id),
        "network": str(given.get("network") or ""),
        "day": str(given.get("start") or (interval.date() if interval else "")),
        "step": str(instance.task_id),
        "reason": (str(context.get("exception") or "").splitlines() or [""])[0],
        "link": str(getattr(instance, "log_url", "") or ""),
    }
    text = "{dag} {network} {day}: {step} failed: {reason} {link}".format(**facts)
    return {"text": " ".join(text.split()), **facts}


def _post(url: str, alert: dict[str, str]) -> None:
    import httpx

    httpx.post(url, json=alert, timeout=TIMEOUT).raise_for_status()


def _mail(settings: AlertsSettings, alert: dict[str, str]) -> None:
    message = EmailMessage()
    message["Subject"] = f"{alert['dag']} {alert['day']}: {alert['step']} failed"
    message["From"] = settings.mail_from or "permalake@localhost"
    message["To"] = ", ".join(settings.mail_to)
    message.set_content("\n".join(f"{name}: {value}" for name, value in alert.items() if value))
    with smtplib.SMTP(settings.smtp_host or "", settings.smtp_port, timeout=TIMEOUT) as server:
        if settings.smtp_user and settings.smtp_password:
            server.starttls()
            server.login(settings.smtp_user, settings.smtp_password.get_secret_value())
        server.send_message(message)
