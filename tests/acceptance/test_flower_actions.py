"""A job is paused, slowed down and cancelled from its page, in a real browser, while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cassandra.cluster import Session
from playwright.sync_api import Browser, Page, expect

from bench.made_jobs import make_load
from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger.connection import connect
from ringhaul.ledger.history import History
from ringhaul.ledger.ledger import Ledger
from tests.acceptance.browser import LAPTOP, PHONE, Tab, open_tab
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.flower_site import FlowerSite, flower_site
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import create_table
from tests.acceptance.test_flower_browser import faint_texts

ROWS = 60_000
SCHEDULES = """
[schedule.nightly]
cron = "30 1 * * *"
steps = [["count", "-t", "shop.orders"]]
"""


@pytest.fixture(scope="module")
def site(
    fleet_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FlowerSite]:
    """Flower with the fleet's broker, whose pages may change jobs."""
    folder = tmp_path_factory.mktemp("flower")
    (folder / "schedule.toml").write_text(SCHEDULES)
    variables = {
        "RINGHAUL_WEB_READ_ONLY": "false",
        "RINGHAUL_SCHEDULE_FILE": str(folder / "schedule.toml"),
    }
    with flower_site(Ringhaul(fleet_env, folder), log=folder / "flower.log", **variables) as site:
        yield site


@pytest.fixture
def ledger(fleet_broker: EmbeddedValkey) -> Ledger:
    return Ledger(connect(fleet_broker.url))


@contextmanager
def held_load(
    fleet: Ringhaul, hold: Hold, ledger: Ledger, session: Session, keyspace: str
) -> Iterator[str]:
    """A load whose units wait after the first two, in the background; yields its id."""
    hold.from_unit(2)
    table = create_table(session, keyspace, "id int PRIMARY KEY, total int")
    (fleet.cwd / "in.csv").write_text(
        "id,total\n" + "".join(f"{number},{number}\n" for number in range(ROWS))
    )
    options = ("--unit-size", "16KiB", "--detach")
    detached = fleet.run("load", "in.csv", "-t", table, *options)
    assert detached.code == 7, detached
    job = detached.err.split()[0]
    try:
        wait_until(lambda: ledger.status(job).leased > 0, "its first unit")
        yield job
    finally:
        ledger.cancel(job)
        hold.release()


@contextmanager
def unfinished(ledger: Ledger, job: str) -> Iterator[str]:
    """A running job that no worker takes; yields its id."""
    make_load(ledger, job, 4, done=1)
    try:
        yield job
    finally:
        ledger.cancel(job)


def test_a_running_load_is_controlled_from_its_page(
    fleet: Ringhaul,
    hold: Hold,
    site: FlowerSite,
    browser: Browser,
    ledger: Ledger,
    cassandra_session: Session,
    keyspace: str,
) -> None:
    with (
        held_load(fleet, hold, ledger, cassandra_session, keyspace) as job,
        open_tab(browser) as tab,  # whose console reports the value that is refused
    ):
        page = tab.page
        page.goto(f"{site.url}/jobs/{job}")
        # 1. Pause: a link, a page that asks, and the job's page again, which says so.
        act(page, "Pause", "Pause")
        expect(page.get_by_role("status").filter(has_text="The job is paused")).to_be_visible()
        tab.wait_for(lambda: tab.data("state") == "PAUSED", "the page to show it")
        wait_until(lambda: ledger.status(job).leased == 0, "its workers to stop")
        rows = ledger.status(job).totals.get("loaded", 0)
        # 2. Resume, by the keyboard alone.
        page.get_by_role("link", name="Resume").press("Enter")
        expect(page.get_by_role("button", name="Resume")).to_be_focused()
        page.keyboard.press("Enter")
        tab.wait_for(lambda: tab.data("state") == "RUNNING", "the page to show it")
        wait_until(lambda: ledger.status(job).totals.get("loaded", 0) >= rows, "more rows")
        # 3. A limit; a text that is not a number is refused, and stays in the form.
        page.get_by_role("link", name="Limits").click()
        page.get_by_label("Rows per second").fill("many")
        page.get_by_role("button", name="Set limits").click()
        expect(page.get_by_role("alert")).to_contain_text("give a whole number above 0")
        expect(page.get_by_label("Rows per second")).to_have_value("many")
        page.get_by_label("Rows per second").fill("2000")
        page.get_by_role("button", name="Set limits").click()
        expect(page.get_by_text("The limits take effect")).to_be_visible()
        assert str(ledger.status(job).pace) == "2,000 rows/s"
        # 4. Its priority.
        page.get_by_role("link", name="Priority").click()
        page.get_by_role("radio", name="low").check()
        page.get_by_role("button", name="Set priority").click()
        expect(page.get_by_text("The priority is changed")).to_be_visible()
        assert ledger.status(job).priority == "low"
        # 5. Cancel. On the page of an ended job nothing is left to do.
        act(page, "Cancel job", "Cancel job")
        tab.wait_for(lambda: tab.data("state") == "CANCELLED", "the page to show it")
        expect(page.get_by_role("navigation", name="Actions")).to_have_count(0)
        kinds = [event.kind for event in History(ledger.caller).events(job) if event.by == "page"]
        assert kinds == ["paused", "resumed", "throttled", "priority", "ended"]
        assert [error for error in tab.errors if "400" not in error] == []


def act(page: Page, link: str, button: str) -> None:
    page.get_by_role("navigation", name="Actions").get_by_role("link", name=link).click()
    page.get_by_role("button", name=button).click()


def test_a_page_that_is_old_says_who_was_faster(
    site: FlowerSite, browser: Browser, ledger: Ledger
) -> None:
    with (
        unfinished(ledger, "ld-raced") as job,
        open_tab(browser) as first,
        open_tab(browser) as second,
    ):
        # 1. Two people are about to change a paused job.
        ledger.pause(job)
        first.page.goto(f"{site.url}/jobs/{job}/cancel")
        second.page.goto(f"{site.url}/jobs/{job}/resume")
        # 2. The first cancels it; the second gets a message, and nothing happens.
        first.page.get_by_role("button", name="Cancel job").click()
        expect(first.page.get_by_text("The job is cancelled")).to_be_visible()
        second.page.get_by_role("button", name="Resume").click()
        alert = second.page.get_by_role("alert")
        expect(alert).to_contain_text(f"{job} is CANCELLED, and was PAUSED when this page was made")
        assert ledger.status(job).state_name == "CANCELLED"


def test_another_site_cannot_press_a_button(
    site: FlowerSite, browser: Browser, ledger: Ledger
) -> None:
    """A page of another origin sends a form to ours, from a browser that has our cookie."""
    with (
        unfinished(ledger, "ld-aimed-at") as job,
        open_tab(browser) as tab,
    ):
        page = tab.page
        page.goto(f"{site.url}/jobs/{job}/cancel")
        evil = (
            f'<form method="post" action="{site.url}/jobs/{job}/cancel">'
            '<input name="seen" value="RUNNING"><button>Win a prize</button></form>'
        )
        page.route(
            "http://evil.example/", lambda route: route.fulfill(content_type="text/html", body=evil)
        )
        page.goto("http://evil.example/")
        with page.expect_response(lambda answer: "/cancel" in answer.url) as sent:
            page.get_by_role("button").click()
        assert sent.value.status == 403
        assert ledger.status(job).state_name == "RUNNING"
        # Nor can it frame our page, to have people click on it unseen.
        framing = f'<iframe src="{site.url}/jobs/{job}/cancel"></iframe>'
        page.route(
            "http://frame.example/",
            lambda route: route.fulfill(content_type="text/html", body=framing),
        )
        page.goto("http://frame.example/")
        page.wait_for_timeout(500)
        assert all("Cancel job" not in frame.content() for frame in page.frames[1:])


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_actions_schedules_and_hosts_fit(
    site: FlowerSite, browser: Browser, ledger: Ledger, size: tuple[int, int], scheme: str
) -> None:
    with (
        unfinished(ledger, f"ld-shown-{scheme}-{size[0]}") as job,
        open_tab(browser, size=size, scheme=scheme) as tab,  # type: ignore[arg-type]
    ):
        paths = [f"/jobs/{job}/{name}" for name in ("pause", "throttle", "priority", "cancel")]
        paths += ["/schedules", "/schedules/nightly", "/schedules/nightly/pause", "/hosts"]
        for path in paths:
            tab.page.goto(f"{site.url}{path}")
            width = tab.page.evaluate("document.documentElement.scrollWidth")
            assert width <= size[0], (path, width)
            assert faint_texts(tab) == [], path
        assert tab.errors == []


def test_flowers_own_pages_work_under_our_policy(site: FlowerSite, tab: Tab) -> None:
    """Its scripts, styles and pictures are allowed; what the policy blocks is a console error."""
    for path in ("/", "/tasks", "/broker"):
        tab.page.goto(f"{site.url}{path}")
        tab.page.wait_for_load_state("networkidle")
    assert tab.errors == []


def test_read_only_pages_have_no_actions(
    fleet: Ringhaul, browser: Browser, ledger: Ledger, tmp_path: Path
) -> None:
    with (
        unfinished(ledger, "ld-fixed") as job,
        flower_site(fleet, log=tmp_path / "flower.log") as site,
        open_tab(browser) as tab,
    ):
        tab.page.goto(f"{site.url}/jobs/{job}")
        expect(tab.page.get_by_role("heading", name=job)).to_be_visible()
        expect(tab.page.get_by_role("link", name="Pause")).to_have_count(0)
        expect(tab.page.get_by_role("button", name="Cancel")).to_have_count(0)
        tab.page.goto(f"{site.url}/jobs/{job}/cancel")
        expect(tab.page.get_by_text("This page is read-only")).to_be_visible()
