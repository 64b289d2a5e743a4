"""Add our pages and metrics to Flower.

If the pages do not know this version of Flower, plain Flower starts, and says why.
"""

from __future__ import annotations

import logging

from tornado.web import Application

from producer.metrics.collector import register
from producer.web.exposure import Exposure
from producer.web.seams import FlowerChanged, check_seams
from tasks.settings import process_settings

logger = logging.getLogger(__name__)


def add_pages(application: Application, exposure: Exposure) -> bool:
    """Add the pages to Flower's application, before it serves. Return whether that was possible; if
    not, a warning in the log says why."""
    try:
        check_seams(application)
        # Pages import Flower's base class, which was not checked before.
        from producer.web.routes import add_routes

        add_routes(application, exposure)
    except FlowerChanged as error:
        logger.warning(
            "The pages about jobs are left out, since this version of Flower is different: %s. "
            "Install the version in requirements.txt to have them.",
            error,
        )
        return False
    except Exception:
        logger.warning("The pages about jobs are left out, because of an error:", exc_info=True)
        return False
    return True


def add_metrics() -> None:
    """Add the metrics of the ledger to Flower's page `/metrics`, unless an error, which the log
    shows, prevents it."""
    try:
        register(process_settings())  # with an embedded broker by now
    except Exception:
        logger.warning("The metrics of jobs are left out, because of an error:", exc_info=True)
