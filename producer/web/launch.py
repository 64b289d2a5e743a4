"""Start Flower with safe options: who may reach it, what it keeps, and no secret on a command line.

Defaults are set before Flower reads its environment, its settings file and its command line, which
override them. When it has read all of these, and before it listens, `_guarded` decides by the
result whether it may serve.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from config.celery_config import FLOWER_DEFAULTS
from config.known_secrets import remember
from config.secrets import read_log_ins
from config.sections import Settings, WebSettings
from config.trust import why_untrusted
from producer.commands.celery_commands import end_process, run_celery
from producer.outputs.state_folder import using_state
from producer.request.settings import settle
from producer.startup import stay
from producer.web.exposure import Listening, exposure_of
from producer.web.flower_options import check_variables, in_its_form
from producer.web.guards import Guarded
from producer.web.plugin import add_metrics, add_pages
from ringhaul.errors import UsageError

#: Options with a secret -> what to use instead. A command line is visible to every user of a host.
_SECRET_OPTIONS = {
    "basic_auth": "FLOWER_BASIC_AUTH, or web.basic_auth_file to a file with a line user:password",
    "oauth2_secret": "FLOWER_OAUTH2_SECRET",
    "cookie_secret": "FLOWER_COOKIE_SECRET",
    "broker_api": "FLOWER_BROKER_API",
}
#: Lets any web site that is open in a browser call Flower's API.
_OPEN_API = "FLOWER_UNAUTHENTICATED_API"
#: File of `--persistent`, in a folder of the state folder: Flower unpickles it.
_DB = ("web", "tasks")


def refuse_unsafe(arguments: Sequence[str]) -> None:
    """Raise `UsageError` for an option that shows a secret in the process list, and if Flower's API
    would be open to everybody."""
    for argument in arguments:
        name = argument.lstrip("-").partition("=")[0].replace("-", "_")
        if argument.startswith("-") and name in _SECRET_OPTIONS:
            raise UsageError(
                f"--{name} holds a secret, which every user of this host can see: "
                f"set {_SECRET_OPTIONS[name]}"
            )
    if os.environ.get(_OPEN_API, "").lower() not in ("", "0", "n", "no", "f", "false", "off"):
        raise UsageError(
            f"{_OPEN_API} lets every web site that is open in a browser call Flower's API: "
            "leave it out, and set FLOWER_BASIC_AUTH=user:password for programs that call the API"
        )


def start_flower(config_file: Path | None, flower_options: tuple[str, ...]) -> None:
    """Serve the monitoring page until it is stopped, and end this process.

    Raises `UsageError` for options that are not safe, and as `settle` does.
    """
    refuse_unsafe(flower_options)
    loaded = settle({}, config_file)
    run_celery(loaded, list(flower_options), partial(run_flower, loaded.settings))
    end_process()


def run_flower(settings: Settings, arguments: list[str]) -> None:
    """Run Flower's command in this process, until it is stopped."""
    from tasks import app

    arguments = prepare(settings, arguments)
    stay()
    app.start(argv=["flower", *arguments])


def prepare(settings: Settings, arguments: list[str]) -> list[str]:
    """Set Flower's defaults, guard the application that its command will create, and return the
    arguments for that command.

    Raises `ConfigError` for a file of log-ins that cannot be used, and `UsageError` for options.
    """
    import flower.command
    from tornado.options import options

    arguments = in_its_form(arguments, options)
    check_variables(os.environ, options)
    for name, value in FLOWER_DEFAULTS.items():
        setattr(options, name, value)
    # By default Flower runs `flowerconfig.py` of the current folder, and unpickles `flower` there.
    options.conf = os.devnull
    options.db = str(settings.state_dir.joinpath(*_DB))
    if settings.web.basic_auth_file is not None:
        options.basic_auth = read_log_ins(settings.web.basic_auth_file, "web.basic_auth_file")
    _hide_secrets()
    try:
        flower.command.Flower = _guarded(flower.command.Flower, settings.web)
    except (AttributeError, TypeError) as error:
        # Nothing then decides by the final options, so the safe ones are given last.
        print(
            f"warning: this version of Flower cannot be guarded ({error}): it serves its own pages "
            "only, read-only, on loopback; install the version in requirements.txt",
            file=sys.stderr,
        )
        return [*arguments, "--address=127.0.0.1", "--unix_socket=", "--read_only=True"]
    # None, if nothing sets it: `web.read_only` then decides about our pages.
    options.read_only = None
    return arguments


def _hide_secrets() -> None:
    """Mask the secrets of Flower's variables in all logs."""
    for log_in in os.environ.get("FLOWER_BASIC_AUTH", "").split(","):
        remember(log_in.partition(":")[2])
    for name in ("FLOWER_OAUTH2_SECRET", "FLOWER_COOKIE_SECRET"):
        remember(os.environ.get(name, ""))


def _guarded(flower_class: Any, web: WebSettings) -> Any:
    """Return Flower's application class with our guards."""

    class GuardedFlower(Guarded, flower_class):  # type: ignore[misc]
        def __init__(self, options: Any = None, **kwargs: Any) -> None:
            listening = Listening(
                address=options.address,
                unix_socket=options.unix_socket,
                has_log_in=bool(options.basic_auth or options.auth),
                read_only=options.read_only,
            )
            exposure = exposure_of(web, listening)
            options.read_only = exposure.flower_read_only
            if options.persistent:
                _keep_private(Path(options.db))
            kwargs.setdefault("xsrf_cookie_kwargs", {"samesite": "Strict"})
            super().__init__(options=options, **kwargs)
            self.guard(exposure, options.url_prefix)
            add_pages(self, exposure)
            add_metrics()

        def start_http_server(self) -> Any:
            try:
                return super().start_http_server()
            except (OSError, OverflowError) as error:
                place = self.options.unix_socket or f"{self.options.address}:{self.options.port}"
                raise UsageError(
                    f"Flower cannot listen on {place}: {error}. Set another --port or --address"
                ) from error

    return GuardedFlower


def _keep_private(db: Path) -> None:
    """Create the folder of Flower's file if necessary. Raises `UsageError` if another user could
    put a file there, since Flower unpickles it, which runs code."""
    folder = db.absolute().parent
    with using_state(folder):
        for one in reversed([folder, *folder.parents]):
            if not one.exists():  # `parents=True` would give others what the umask leaves
                one.mkdir(mode=0o700)
    why = why_untrusted(folder)
    if why is not None:
        raise UsageError(
            f"--persistent: Flower would run what others put into {folder}, and {why}: `chmod 700` "
            "it and its folder, or name another file by --db"
        )
