"""The message of a page after a change, carried from the form to the next page in a signed cookie.

With an argument of the URL instead, anybody could write a link whose page claims that a running job
was cancelled.
"""

from __future__ import annotations

from tornado.web import RequestHandler

_COOKIE = "ringhaul_did"


def note_done(handler: RequestHandler, about: str, action: str) -> None:
    """Remember for the next page about a job or schedule that this was done to it."""
    handler.set_signed_cookie(
        _COOKIE, f"{about} {action}", expires_days=None, httponly=True, samesite="Strict"
    )


def take_done(handler: RequestHandler, about: str) -> str:
    """Return what was just done to a job or schedule, once; empty: nothing."""
    noted = (handler.get_signed_cookie(_COOKIE, max_age_days=1) or b"").decode(errors="replace")
    if not noted:
        return ""
    handler.clear_cookie(_COOKIE)
    thing, _, action = noted.rpartition(" ")
    return action if thing == about else ""
