"""Section ``[alerts]``."""

from __future__ import annotations

from pydantic import Field, SecretStr, model_validator

from permalake.config.section import Section


class AlertsSettings(Section):
    """``[alerts]``: the receivers of failures, missed deadlines and publications."""

    webhook: SecretStr | None = None
    publications: bool = True
    """Whether the webhook also gets what was published."""
    smtp_host: str | None = None
    smtp_port: int = Field(default=25, ge=1, le=65535)
    smtp_user: str | None = None
    smtp_password: SecretStr | None = None
    mail_from: str | None = None
    mail_to: tuple[str, ...] = ()
    deadline: str = Field(default="06:00", pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")

    @model_validator(mode="after")
    def _names_whole_mail(self) -> AlertsSettings:
        if bool(self.smtp_host) != bool(self.mail_to):
            raise ValueError("give smtp_host and mail_to, or neither: no mail is sent with one of them")
        return self
