"""``make tour``: Airflow in a real browser, as a new operator meets it; screenshots into ``docs/tour``.

Needs Chromium and its driver (Debian: apt-get install chromium chromium-driver). Not a test: the same is
checked over the REST API by ``tests/operators``. Ten synthetic days, one of which lacks its prices.

``--address URL --password P --folder DIR`` goes through an Airflow that runs already.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from permalake.config import load_settings
from permalake.domains import open_reader
from permalake.local import airflow_secrets
from permalake.paths import ROOT
from permalake_simulate.iota import tangle_generator
from permalake_simulate.iota.tangle_world import IotaWorld
from permalake_simulate.wormhole import vaa_generator
from permalake_simulate.wormhole.bridge_world import WormholeWorld
from support.live_airflow import LiveAirflow
from support.operator_days import lose_prices

SHOTS = ROOT / "docs" / "tour"
FIRST, DAYS = date(2022, 9, 28), 10
LAST = FIRST + timedelta(DAYS - 1)
IOTA, WORMHOLE = "iota_daily", "wormhole_daily"
DIALOG = "//*[@role='dialog']"
WINDOW = "--window-size=1280,960"
# React notices a new value only this way.
SET_VALUE = """
Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(arguments[0], arguments[1]);
for (const name of ['input', 'change']) arguments[0].dispatchEvent(new Event(name, {bubbles: true}));
"""
CONFIG = """
[lake]
warehouse = "lake"
[networks.tangle]
protocol = "stardust"
bech32_hrp = "smr"
path = "tangle"
[wormhole]
path = "world/vaas"
reference = "world/reference"
[prices]
path = "world/price_history.csv"
max_missing = 0.5
"""


class Browser:
    """Chromium without a window."""

    def __init__(self, address: str) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or "/usr/bin/chromium"
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            WINDOW,
        ):
            options.add_argument(argument)
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.address = address

    def open(self, path: str) -> None:
        self.driver.get(f"{self.address}{path}")

    def find(self, selector: str, seconds: float = 60) -> WebElement:
        """The first element that is there to be used."""
        by = By.XPATH if selector.startswith("/") else By.CSS_SELECTOR

        def usable(driver: webdriver.Chrome) -> WebElement | None:
            found = driver.find_elements(by, selector)
            return next((one for one in found if one.is_displayed() and one.is_enabled()), None)

        return WebDriverWait(self.driver, seconds).until(usable)

    def press(self, text: str, within: str = "") -> None:
        """A button by its words or its label."""
        self.find(f"{within}//button[normalize-space()='{text}' or @aria-label='{text}']").click()

    def shot(self, name: str, settle: float = 2) -> None:
        time.sleep(settle)
        self.driver.save_screenshot(str(SHOTS / f"{name}.png"))
        sys.stdout.write(f"{name}.png\n")
        sys.stdout.flush()

    def calendar(self, name: str, network: str) -> None:
        """The plugin's page, inside Airflow's, from a network on."""
        self.open("/plugin/permalake-days")
        self.driver.switch_to.frame(self.find("iframe"))
        self.driver.execute_script("arguments[0].scrollIntoView()", self.find(f"//h3[.='{network}']"))
        self.driver.switch_to.default_content()
        self.shot(name)

    def fill(self, field: WebElement, value: str) -> None:
        """A field of a form."""
        self.driver.execute_script("arguments[0].scrollIntoView()", field)
        self.driver.execute_script(SET_VALUE, field, value)


def log_in(browser: Browser, password: str) -> None:
    """From the address that ``make up`` prints to the documentation of a DAG."""
    browser.open("/")
    browser.find("[name=username]").send_keys(airflow_secrets.USER)
    browser.shot("01-login")
    browser.find("[name=password]").send_keys(password)
    browser.find("button[type=submit]").click()
    browser.find("//a[contains(., 'Dags')]")
    browser.open("/dags")
    browser.find(f"//a[contains(., '{IOTA}')]")
    browser.shot("02-dags")
    browser.open(f"/dags/{IOTA}")
    browser.press("Dag Docs")
    browser.shot("03-documentation")


def one_day(server: LiveAirflow, browser: Browser) -> None:
    """A day by hand."""
    browser.open(f"/dags/{IOTA}")
    browser.press("Trigger Dag")
    browser.fill(browser.find("[name=element_network]"), "tangle")
    browser.fill(browser.find("[name=element_start]"), str(FIRST))
    browser.shot("04-trigger-a-day")
    browser.press("Trigger", DIALOG)
    (run,) = ended(server, IOTA, "manual", 1)
    browser.open(f"/dags/{IOTA}/runs/{run}/tasks/ingest_decode")
    browser.find("//*[contains(text(), 'ingest tangle')]", 180)
    browser.shot("05-task-log", 6)
    browser.calendar("06-calendar", "tangle")


def ten_days(server: LiveAirflow, browser: Browser, folder: Path) -> None:
    """A backfill of which one day fails; it is mended, cleared and goes on."""
    mend = lose_prices(folder / "world" / "price_history.csv", FIRST + timedelta(4))
    browser.open(f"/dags/{WORMHOLE}")
    browser.press("Trigger Dag")
    browser.find("//*[normalize-space()='Backfill' and not(*)]").click()
    for label, day in (("From", FIRST), ("To", LAST)):
        browser.find(f"//label[.='{label}']/following::*[@data-testid='datetime-input']").click()
        browser.find("[placeholder='YYYY/MM/DD']").send_keys(f"{day:%Y/%m/%d}", Keys.ESCAPE)
    browser.fill(browser.find("[name=max_active_runs]"), "2")
    browser.shot("07-backfill", 4)
    browser.press("Run Backfill", DIALOG)
    runs = ended(server, WORMHOLE, "backfill", DAYS)
    (failed,) = [run for run, state in runs.items() if state == "failed"]
    browser.open(f"/dags/{WORMHOLE}/runs/{failed}")
    browser.shot("08-a-failed-day", 5)
    browser.calendar("09-calendar-with-a-failed-day", "wormhole")

    mend()
    browser.open(f"/dags/{WORMHOLE}/runs/{failed}")
    browser.find("//button[contains(@aria-label, 'to clear')]").click()
    browser.shot("10-clear-the-day", 4)
    browser.press("Confirm", DIALOG)
    server.until(lambda: server.runs(WORMHOLE)[failed]["state"] == "success", "the mended day", 1800)
    reader = open_reader(load_settings(folder / "lake.toml"))
    server.until(lambda: not reader.stale("wormhole"), "days published before their turn, built again", 1800)
    browser.calendar("11-calendar-turned", "wormhole")
    browser.open(f"/permalake/day?network=wormhole&date={FIRST + timedelta(4)}")
    browser.shot("12-a-day")


def ended(server: LiveAirflow, dag: str, kind: str, count: int) -> dict[str, str]:
    """Runs of a kind and how they ended, once as many as ``count`` have."""

    def states() -> dict[str, str]:
        return {id_: run["state"] for id_, run in server.runs(dag).items() if run["run_type"] == kind}

    server.until(lambda: len(states()) == count, f"{count} {kind} runs of {dag}", 180)
    server.until(lambda: set(states().values()) <= {"success", "failed"}, "their end", 3600)
    return states()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("address", "password", "folder"):
        parser.add_argument(f"--{name}")
    given = parser.parse_args()
    SHOTS.mkdir(parents=True, exist_ok=True)
    folder = Path(given.folder or tempfile.mkdtemp(prefix="permalake-tour-"))
    if not given.address:
        world = IotaWorld(
            "stardust", messages=60, days=1, start=FIRST, seed=5, bech32_hrp="smr", milestones_per_day=6
        )
        tangle_generator.simulate(None, world, folder / "tangle")
        vaa_generator.simulate(None, WormholeWorld(60 * DAYS, DAYS, FIRST, 5, guardians=4), folder / "world")
        (folder / "lake.toml").write_text(CONFIG)
    server = LiveAirflow(folder, folder / "lake.toml")
    try:
        if given.address:
            server.address = given.address
            server.log_in(airflow_secrets.USER, given.password)
        else:
            server.up()
        password = given.password or airflow_secrets.password(folder / "home" / "airflow")
        browser = Browser(server.address)
        try:
            log_in(browser, password)
            one_day(server, browser)
            ten_days(server, browser, folder)
        finally:
            browser.driver.quit()
    finally:
        if not given.address:
            server.down()


if __name__ == "__main__":
    main()
