"""The pages about jobs in a real browser, while a real load runs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from cassandra.cluster import Session
from playwright.sync_api import Browser, Route, expect

from bench.made_jobs import age, make_load
from producer.figures.speed import recent_snapshot
from producer.local.valkey import EmbeddedValkey
from producer.report.job_rows import job_row
from ringhaul.ledger import keys
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from tests.acceptance.browser import LAPTOP, PHONE, Tab, open_tab
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.flower_site import FlowerSite, flower_site
from tests.acceptance.oracle import create_table

ROWS = 25_000


@pytest.fixture(scope="module")
def site(
    fleet_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FlowerSite]:
    """Flower with the fleet's broker."""
    folder = tmp_path_factory.mktemp("flower")
    with flower_site(Ringhaul(fleet_env, folder), log=folder / "flower.log") as site:
        yield site


@pytest.fixture(scope="module")
def ledger(fleet_broker: EmbeddedValkey) -> Ledger:
    """The fleet's ledger, with jobs that have ended."""
    ledger = Ledger(connect(fleet_broker.url))
    for number in range(55):
        make_load(
            ledger, f"ld-browsed{number:02}", 1, table=f"browsed_{number % 5}", rejects=number % 2
        )
    make_load(ledger, "ld-wide", 60, rejects=20)
    age(ledger, "ld-wide", 120)
    return ledger


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, total int")


def is_known(ledger: Ledger, job: str) -> bool:
    try:
        return bool(ledger.status(job))
    except JobMissing:
        return False


def rows_of(ledger: Ledger, job: str) -> int:
    """The rows so far, as `ringhaul status --json` has them."""
    rows: int = job_row(status := ledger.status(job), recent_snapshot(status, []))["rows"]
    return rows


def write_rows(path: Path, rows: int) -> Path:
    path.write_text("id,total\n" + "".join(f"{n},{n * 7}\n" for n in range(rows)))
    return path


def test_a_page_moves_with_its_load_and_has_its_figures(
    fleet: Ringhaul, site: FlowerSite, tab: Tab, ledger: Ledger, table: str
) -> None:
    fleet.run("status")  # the next one is quick
    write_rows(fleet.cwd / "in.csv", ROWS)
    job = f"ld-{table.partition('.')[0]}"
    # Slow: it runs until the page has moved a few times.
    options = ("--job-id", job, "--rate", 1_000, "--unit-size", "16KiB")
    with fleet.started("load", "in.csv", "-t", table, *options, log=fleet.cwd / "load.log") as load:
        wait_until(lambda: is_known(ledger, job), "the job")
        tab.page.goto(f"{site.url}/jobs/{job}")
        tab.page.evaluate("window.loadedOnce = true")
        shown, shares = 0, [0.0]

        def rows_shown() -> int:
            return int(tab.data("rows") or 0)

        while len(set(shares)) < 4:
            # The page reaches what the ledger has, and is never ahead of it
            wait_until(lambda seen=shown: rows_of(ledger, job) > seen, "more rows")
            known = rows_of(ledger, job)
            tab.wait_for(lambda least=known: rows_shown() >= least, f"the page to show {known}")
            shown = rows_shown()
            assert shown <= rows_of(ledger, job)
            shares.append(float(tab.data("share") or 0))
        assert load.poll() is None, "it moved while the load ran"
        assert fleet.run("throttle", job, "--off").code == 0
        assert load.wait(60) == 0
    assert shares == sorted(shares), shares
    # At its end the page has all of its figures, and was never loaded again
    tab.wait_for(lambda: tab.data("state") == "COMPLETE", "the end of the load")
    summary = fleet.run("status", job, "--json").summary
    tab.wait_for(lambda: tab.data("rows") == str(summary["rows"]) == str(ROWS), "all rows")
    figures = tab.page.locator("[data-figure]").evaluate_all(
        "found => found.map(one => [one.dataset.figure, one.dataset.value])"
    )
    assert dict(figures) == {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in summary.items()
        if name != "message_type" and (value is None or isinstance(value, (int, float, str)))
    }
    assert tab.page.evaluate("window.loadedOnce")
    assert tab.page.title() == f"{job} COMPLETE"
    # The list has it, too
    tab.page.goto(f"{site.url}/jobs?q={job}")
    row = tab.page.locator(f'tr[data-job="{job}"]')
    expect(row.locator("[data-rows]")).to_have_text(f"{ROWS:,}")
    row.get_by_role("link", name=job).click()
    expect(tab.page.locator("h1")).to_have_text(job)


def test_the_list_is_filtered_paged_and_live(site: FlowerSite, tab: Tab, ledger: Ledger) -> None:
    tab.page.goto(f"{site.url}/")
    tab.page.get_by_role("link", name="Jobs").click()
    rows = tab.page.locator("tr[data-job]")
    expect(rows).to_have_count(50)
    tab.page.get_by_role("link", name="Older").click()
    expect(tab.page.get_by_text("page 2 of")).to_be_visible()
    tab.page.get_by_role("link", name="Newer").click()
    # By table, then by state as well
    tab.page.get_by_label("Job or table").fill("browsed_3")
    tab.page.keyboard.press("Enter")
    expect(rows).to_have_count(11)
    tab.page.get_by_label("State").select_option("PARTIAL")
    tab.page.get_by_role("button", name="Filter").click()
    expect(rows).to_have_count(6)
    assert set(rows.evaluate_all("rows => rows.map(row => row.dataset.state)")) == {"PARTIAL"}
    expect(tab.page.get_by_label("Job or table")).to_have_value("browsed_3")
    # A new job appears; the focus stays where it was
    tab.page.locator("tr[data-job] a").first.focus()
    focused = tab.page.evaluate("document.activeElement.textContent")
    make_load(ledger, "ld-appears", 1, table="browsed_3", rejects=1)
    expect(rows).to_have_count(7)
    assert rows.first.get_attribute("data-job") == "ld-appears"
    assert tab.page.evaluate("document.activeElement.textContent") == focused
    tab.page.get_by_role("link", name="Show all").click()
    expect(rows).to_have_count(50)


def test_what_was_opened_stays_open(site: FlowerSite, tab: Tab, ledger: Ledger) -> None:
    make_load(ledger, "ld-opened", 4, done=1)
    ledger.cancel("ld-opened")
    tab.page.goto(f"{site.url}/jobs/ld-opened")
    # A browser drops keys that are pressed before it has drawn a page.
    tab.page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    tab.page.locator("details summary").press("Enter")
    expect(tab.page.locator("[data-figure=rows]")).to_be_visible()
    # The page changes above it
    event = json.dumps({"at_ms": 1, "kind": "window shrunk", "text": "by hand"})
    ledger.caller.command("RPUSH", keys.job_key("ld-opened", "events"), event)
    expect(tab.page.get_by_text("by hand")).to_be_visible()
    expect(tab.page.locator("[data-figure=rows]")).to_be_visible()
    assert tab.page.evaluate("document.activeElement.nodeName") == "SUMMARY"


def test_a_page_left_open_does_not_grow(site: FlowerSite, tab: Tab, ledger: Ledger) -> None:
    make_load(ledger, "ld-day", 40, done=20, rejects=5)
    pages = []
    for _ in range(2):
        page = site.get("/jobs/ld-day").text
        pages.append(re.split('data-live="[^"]*">', page)[1].partition("<script")[0])
        ledger.cancel("ld-day")
        time.sleep(0.6)  # a page is shared for half a second
    assert "RUNNING" in pages[0] and "CANCELLED" in pages[1]
    # A day of changes within seconds: each connection brings some hundred of them
    news = [json.dumps({"title": "", "html": html}) for html in pages]
    stream = "".join(f"event: view\ndata: {news[n % 2]}\n\n" for n in range(150))
    answers = []

    def answer(route: Route) -> None:
        answers.append(1)
        route.fulfill(content_type="text/event-stream", body=stream)

    tab.page.route("**/events", answer)
    tab.page.goto(f"{site.url}/jobs/ld-day")
    browser = tab.page.context.new_cdp_session(tab.page)
    browser.send("Performance.enable")

    def size() -> dict[str, float]:
        browser.send("HeapProfiler.collectGarbage")
        metrics = browser.send("Performance.getMetrics")["metrics"]
        return {one["name"]: one["value"] for one in metrics}

    tab.wait_for(lambda: len(answers) > 1, "the first changes")
    before = size()
    tab.wait_for(lambda: len(answers) > 3, "a day of changes", 60)
    limits = {"Nodes": 500, "JSEventListeners": 20, "JSHeapUsedSize": 1e6}

    def is_as_small() -> bool:
        after = size()  # what is garbage goes step by step
        return all(after[name] < before[name] + more for name, more in limits.items())

    tab.wait_for(is_as_small, f"the page to be as small as before: {before}, {size()}")


def test_a_page_says_that_the_server_is_away_and_recovers(
    fleet_env: dict[str, str], browser: Browser, ledger: Ledger, tmp_path: Path
) -> None:
    make_load(ledger, "ld-alone", 4, done=1)
    ringhaul = Ringhaul(fleet_env, tmp_path)
    with open_tab(browser) as tab:  # which reports that it cannot connect
        notice = tab.page.locator("#rh-notice")
        with flower_site(ringhaul, log=tmp_path / "flower.log") as first:
            tab.page.goto(f"{first.url}/jobs/ld-alone")
            expect(notice).to_be_hidden()
        expect(notice).to_contain_text("Flower does not answer")
        with flower_site(ringhaul, port=first.port, log=tmp_path / "again.log"):
            ledger.cancel("ld-alone")
            tab.wait_for(lambda: tab.data("state") == "CANCELLED", "the page to recover")
            expect(notice).to_be_hidden()


def test_a_page_of_a_forgotten_job_says_so(site: FlowerSite, tab: Tab, ledger: Ledger) -> None:
    make_load(ledger, "ld-forgotten", 4, done=1)
    tab.page.goto(f"{site.url}/jobs/ld-forgotten")
    expect(tab.page.locator("h1")).to_have_text("ld-forgotten")
    for key in ledger.caller.command("KEYS", "ringhaul:{ld-forgotten}:*"):
        ledger.caller.command("DEL", key)
    expect(tab.page.locator("#rh-notice")).to_contain_text("there is no job ld-forgotten")


class Focus(NamedTuple):
    """Where the keyboard is."""

    html: str
    ours: bool  #: In our part of the page.
    top: float
    outline: str  #: CSS outline style.


def press_tab(tab: Tab) -> Focus:
    tab.page.keyboard.press("Tab")
    found = tab.page.evaluate(
        """() => {
            const one = document.activeElement;
            const top = one.getBoundingClientRect().top + window.scrollY;
            const ours = Boolean(one.closest(".rh-page"));
            return [one.outerHTML, ours, top, getComputedStyle(one).outlineStyle];
        }"""
    )
    return Focus(*found)


@pytest.mark.parametrize("path", ["/jobs", "/jobs/ld-wide"])
def test_a_keyboard_reaches_everything(
    site: FlowerSite, tab: Tab, ledger: Ledger, path: str
) -> None:
    tab.page.goto(f"{site.url}{path}")
    wanted = tab.page.evaluate(
        """() => [...document.querySelectorAll(
            'a[href], button, input:not([type=hidden]), select, summary'
        )].filter(one => one.checkVisibility()).map(one => one.outerHTML)"""
    )
    seen = [press_tab(tab) for _ in range(len(wanted) + 5)]
    assert [html for html in wanted if html not in {focus.html for focus in seen}] == []
    # In the order of the page, and visibly
    ours = [focus for focus in seen if focus.ours]
    assert all(after.top >= before.top - 40 for before, after in pairwise(ours))
    assert {focus.outline for focus in ours} == {"solid"}


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_every_width_and_are_readable(
    browser: Browser, site: FlowerSite, ledger: Ledger, size: tuple[int, int], scheme: str
) -> None:
    with open_tab(browser, size=size, scheme=scheme) as tab:  # type: ignore[arg-type]
        for path in ("/jobs", "/jobs/ld-wide", "/jobs/ld-never"):
            tab.page.goto(f"{site.url}{path}")
            width = tab.page.evaluate("document.documentElement.scrollWidth")
            assert width <= size[0], (path, width)
            assert faint_texts(tab) == [], path
        assert [error for error in tab.errors if "404" not in error] == []


def faint_texts(tab: Tab) -> list[str]:
    """Texts of our pages whose contrast with what is behind them is below 4.5."""
    found: list[str] = tab.page.evaluate(
        """() => {
            const parse = colour => colour.match(/[\\d.]+/g).map(Number);
            const light = ([r, g, b]) => {
                const part = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
                return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
            };
            const behind = element => {
                for (let one = element; one; one = one.parentElement) {
                    const colour = parse(getComputedStyle(one).backgroundColor);
                    if (colour.length < 4 || colour[3] > 0.9) return colour;
                }
                return [255, 255, 255];
            };
            const faint = [];
            for (const one of document.querySelectorAll('.rh-page *')) {
                const own = [...one.childNodes].some(n => n.nodeType === 3 && n.nodeValue.trim());
                if (!own || !one.checkVisibility()) continue;
                const svg = one instanceof SVGElement;
                const style = getComputedStyle(one);
                const ink = light(parse(svg ? style.fill : style.color)) + 0.05;
                const paper = light(behind(one)) + 0.05;
                const ratio = Math.max(ink, paper) / Math.min(ink, paper);
                if (ratio < 4.5) faint.push(`${ratio.toFixed(1)} ${one.textContent.slice(0, 40)}`);
            }
            return faint;
        }"""
    )
    return found


def test_a_page_works_without_a_script(browser: Browser, site: FlowerSite, ledger: Ledger) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"{site.url}/jobs?state=PARTIAL&q=ld-wide")
        page.get_by_role("link", name="ld-wide").click()
        expect(page.locator("h1")).to_have_text("ld-wide")
        expect(page.get_by_text("is not a decimal number").first).to_be_visible()
    finally:
        context.close()
