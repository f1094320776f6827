"""How a message leaves the service: by a webhook or by e-mail, with the standard library alone."""

from __future__ import annotations

import email.message
import email.utils
import json
import smtplib
import ssl
import urllib.request
from typing import Any, NamedTuple

from omg_trial.trial_file.alerts import Alerts, secret

TIMEOUT = 20.0
"""Seconds that a server has to take a message."""


class Message(NamedTuple):
    """A message to the team. It names no people."""

    subject: str
    text: str
    facts: dict[str, Any]
    """The same for a program: trial, severity, check, incident, time."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token must not follow whoever redirects."""

    def redirect_request(self, *_: Any) -> None:
        return None


def no_redirects() -> urllib.request.OpenerDirector:
    """Return what opens an address, and no other that it may point to."""
    return urllib.request.build_opener(_NoRedirect)


class Webhook:
    """Posts messages as JSON, with a field `text`, which chat services show."""

    name = "webhook"

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def send(self, message: Message) -> dict[str, Any]:
        """Post a message; any answer but 2xx is an error. Return who was refused: nobody, as there is one recipient."""
        content = json.dumps({"text": f"{message.subject}\n{message.text}", **message.facts}).encode()
        request = urllib.request.Request(self._url, content, self._headers, method="POST")
        no_redirects().open(request, timeout=TIMEOUT).close()
        return {}


class Mail:
    """Sends messages by e-mail."""

    name = "e-mail"

    def __init__(self, alerts: Alerts) -> None:
        assert alerts.smtp is not None
        host, _, port = alerts.smtp.partition(":")
        self._alerts, self._host, self._port = alerts, host, int(port)
        self._password = secret(alerts.password)

    def send(self, message: Message) -> dict[str, Any]:
        """Hand a message to the mail server, and return the recipients that it refused, unless that is all of them."""
        mail, alerts = email.message.EmailMessage(), self._alerts
        mail["Subject"], mail["From"], mail["To"] = message.subject, alerts.sender, ", ".join(alerts.to)
        mail["Date"], mail["Message-ID"] = email.utils.localtime(), email.utils.make_msgid(domain="omg-trial")
        mail.set_content(message.text)
        with self._connected() as server:
            if alerts.user is not None and self._password is not None:
                server.login(alerts.user, self._password)
            return server.send_message(mail)

    def _connected(self) -> smtplib.SMTP:
        if self._alerts.security == "tls":
            return smtplib.SMTP_SSL(self._host, self._port, timeout=TIMEOUT, context=ssl.create_default_context())
        server = smtplib.SMTP(self._host, self._port, timeout=TIMEOUT)
        if self._alerts.security == "starttls":
            try:
                server.starttls(context=ssl.create_default_context())
            except BaseException:
                server.close()
                raise
        return server


Channel = Webhook | Mail
"""A way to send messages: `send` raises if one was not taken."""


def channels(alerts: Alerts) -> list[Channel]:
    """Return the channels of a trial file; `ValueError` if a secret that it names is not there.

    >>> channels(Alerts())
    []
    """
    found: list[Channel] = []
    if alerts.webhook is not None:
        found.append(Webhook(str(secret(alerts.webhook)), secret(alerts.webhook_token)))
    if alerts.smtp is not None:
        found.append(Mail(alerts))
    return found
