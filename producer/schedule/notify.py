"""Send a notification about the end of a run: a JSON document, on the standard input of a command
or as the body of a POST to a webhook."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from config.errors import ConfigError
from config.known_secrets import remember
from config.secrets import read_secret
from ringhaul.backoff import pause_s
from ringhaul.schedule.parse import check_webhook
from ringhaul.schedule.schedules import Notify
from ringhaul.web_client import exchange

TRIES = 3
PAUSE_S = 1.0  #: after the first try; twice as long after each further one
PAUSE_MAX_S = 10.0


class _Request(NamedTuple):
    """Where a document is posted."""

    url: str
    headers: Mapping[str, str]


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
        _request(notify)
    except (ConfigError, ValueError) as error:
        return str(error)
    return None


def send_notification(
    notify: Notify, document: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> str:
    """Send the notification; return `"ok"`, or the error without the address and any secret.

    `environment`: variables of the notification's command; None: this process's variables.
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
        request = _request(notify)
    except (ConfigError, ValueError) as error:
        return f"webhook: {error}", False
    try:
        answer = exchange(
            "POST",
            request.url,
            timeout_s=notify.timeout_s,
            headers=request.headers,
            body=body,
            by_proxy=True,
        )
    except (OSError, HTTPException) as error:
        return f"webhook: {type(error).__name__}", True
    if 200 <= answer.status < 300:
        return "ok", False
    return f"webhook: status {answer.status}", answer.status >= 500 or answer.status == 429


def _request(notify: Notify) -> _Request:
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
    return _Request(url, headers)


def _is_pipe(path: str) -> bool:
    """Return whether `path` is a pipe or device, where reading blocks or consumes the content."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
