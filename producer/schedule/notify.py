"""Send a notification about the end of a run: a JSON document, on the standard input of a command
or as the body of a POST to a webhook."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any

from config.errors import ConfigError
from config.known_secrets import remember
from config.secrets import read_secret
from ringhaul.backoff import pause_s
from ringhaul.schedule.parse import check_webhook
from ringhaul.schedule.schedules import Notify

TRIES = 3
PAUSE_S = 1.0  #: after the first try; twice as long after each further one
PAUSE_MAX_S = 10.0
#: How much of a webhook's response is read; it is ignored.
_ANSWER_BYTES = 4096


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: the document goes only to the address that was configured."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> None:
        return None


def find_problem(notify: Notify) -> str | None:
    """Return why this notification cannot be sent from here, as far as that can be checked in
    advance; None if nothing is wrong. The text has no address and no secret."""
    if notify.command:
        name = notify.command[0]
        found = shutil.which(name)
        return None if found else f"command {name}: not found, or this user may not run it"
    if any(map(_is_pipe, (notify.webhook_file, notify.authorization_file))):
        return None  # a pipe can be read only once, and blocks until it is written to
    try:
        _request(notify, b"")
    except (ConfigError, ValueError) as error:
        return str(error)
    return None


def send_notification(
    notify: Notify, document: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> str:
    """Send the notification; return `"ok"`, or the error without the address and any secret.

    `environment`: the variables of a command; None: those of this process.
    """
    body = json.dumps(document).encode()
    if notify.command:
        return _run(notify, body, environment)
    for tries in range(1, TRIES):
        outcome, again = _post(notify, body)
        if not again:
            return outcome
        time.sleep(pause_s(tries, first_s=PAUSE_S, max_s=PAUSE_MAX_S))
    return _post(notify, body)[0]


def _run(notify: Notify, body: bytes, environment: Mapping[str, str] | None) -> str:
    name = Path(notify.command[0]).name
    try:
        process = subprocess.Popen(
            notify.command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that its children can be killed with it
        )
    except OSError as error:
        return f"{name}: {error.strerror}"
    with process:
        try:
            process.communicate(body, timeout=notify.timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"{name}: took more than {notify.timeout_s} s"
    return "ok" if process.returncode == 0 else f"{name}: exit code {process.returncode}"


def _post(notify: Notify, body: bytes) -> tuple[str, bool]:
    """Return the outcome, and whether a retry may help."""
    try:
        request = _request(notify, body)
    except (ConfigError, ValueError) as error:
        return f"webhook: {error}", False
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(request, timeout=notify.timeout_s) as answer:
            answer.read(_ANSWER_BYTES)
        return "ok", False
    except urllib.error.HTTPError as error:
        with error:
            return f"webhook: status {error.code}", error.code >= 500 or error.code == 429
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        return f"webhook: {type(reason).__name__}", True


def _request(notify: Notify, body: bytes) -> urllib.request.Request:
    url = notify.webhook
    if notify.webhook_file:
        url = read_secret(Path(notify.webhook_file), "webhook_file")
        try:
            check_webhook(url)
        except ValueError as error:
            raise ValueError(f"webhook_file: {notify.webhook_file}: {error}") from None
    headers = {"Content-Type": "application/json"}
    if notify.authorization_file:
        path = Path(notify.authorization_file)
        headers["Authorization"] = read_secret(path, "authorization_file")
        remember(headers["Authorization"].partition(" ")[2])  # without its scheme, such as Bearer
    return urllib.request.Request(url, data=body, headers=headers, method="POST")


def _is_pipe(path: str) -> bool:
    """Return whether `path` is a pipe or device, where reading blocks or consumes the content."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
