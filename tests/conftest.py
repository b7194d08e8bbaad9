"""Fixtures that every test may use."""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest
import sqlalchemy

from permalake.config import load_settings
from permalake.local.services import control
from permalake.local.services.daemon import free_port
from permalake.spark import class_archive, jars
from permalake.spark.session import SMALL_CONF, session
from permalake.spark.submit import WORKER_DAEMON
from support import whole_runs
from support.units import UnitScheduling

HERE = Path(__file__).parent

# With collected tests, looking for garbage took a sixth of the time of tests without a server.
gc.set_threshold(50_000)

# A busy machine is no defect: examples may take as long as they take.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")

# Settings from the environment outrank a test's own: tests would publish into a warehouse that the shell has
# exported.
for _variable in [name for name in os.environ if name.startswith("PERMALAKE_") and "__" in name]:
    del os.environ[_variable]

CONFIG = """
[lake]
warehouse = "warehouse"
[networks.shimmer]
protocol = "stardust"
bech32_hrp = "smr"
path = "shimmer"
[networks.testnet]
protocol = "stardust"
bech32_hrp = "rms"
path = "testnet"
[wormhole]
path = "wormhole"
[prices]
path = "prices.csv"
"""
# Folders and modules: what takes longest begins first, so that all processes end at about the same time. One
# long module that begins last keeps one process busy when the others have ended. What needs a store begins
# when the stores are fetched.
LONG = (
    "operators",
    "transparency/test_manipulations.py",
    "transparency",
    "e2e",
    "faults",
    "cluster",
    "stores",
    "iota/permanode",
    "wormhole/events",
    "iota/tables",
    "iota/cone",
    "api/test_workers.py",
    "browser",
    "test_query_process.py",
    "iota",
    "wormhole",
    "audit",
)

# A test belongs to the first tier whose folders hold it, whose fixtures it uses, or whose modules its module
# imports.
TIERS = {
    "airflow": (("operators", "e2e"), {"dag_bag"}, {"airflow"}),
    "server": (
        (
            "net/test_limits_of_responses.py",
            "wormhole/enrich/test_chain_rpcs.py",
            "wormhole/enrich/test_price_services.py",
            "wormhole/sources/test_guardian.py",
        ),
        {"cassandra_server", "own_cassandra_server", "secured_cassandra", "mortal", "bigtable_server"},
        {"permalake.local.services.control"},
    ),
    "spark": (("cluster", "faults"), {"spark", "undisturbed", "undisturbed_settings"}, set()),
    "lake": (
        (
            "lake",
            "iota/rest",
            "wormhole/rest",
            "api",
            "analysts",
            "local",
            "transparency/test_commands.py",
            "transparency/test_deep.py",
            "transparency/test_export.py",
            "transparency/test_landed.py",
            "transparency/test_manipulations.py",
            "transparency/test_mirror.py",
            "transparency/test_mirrored_worlds.py",
            "transparency/test_signing.py",
        ),
        set(),
        set(),
    ),
    "search": (
        (
            "iota/codec/test_fuzz.py",
            "iota/sources/test_poisoned_milestones.py",
            "iota/sources/test_reader_fuzz.py",
            "wormhole/sources/test_reader_fuzz.py",
            "wormhole/sources/test_wormholescan.py",
            "audit/test_rule_violations.py",
            "audit/test_job.py",
        ),
        set(),
        set(),
    ),
    "process": ((), set(), {"subprocess", "multiprocessing", "permalake.local.warm_up"}),
}

# A server or a session ends before the optimising compiler has earned what it costs.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# A heap and a class space that begin small are collected again and again while they grow.
ROOMY = "-Xms1g -Xmn640m -XX:MetaspaceSize=256m"
# Nobody looks at the plans of queries that are over.
FORGETFUL = dict.fromkeys(
    (
        "spark.sql.ui.retainedExecutions",
        "spark.ui.retainedJobs",
        "spark.ui.retainedStages",
        "spark.ui.retainedTasks",
    ),
    "5",
)
# Each of a schema's hundred statements would wait for the disk; a server that is killed forgets them.
SCHEMA_IN_MEMORY = "-Dcassandra.test.flush_local_schema_changes=false"
# It looks at the clock five hundred times a second, all the while that tests work on other things.
COARSE_CLOCK = "-Dcassandra.approximate_time_precision_ms=20"


@sqlalchemy.event.listens_for(sqlalchemy.Engine, "connect")
def _without_waiting_for_the_disk(connection, _record):
    """Catalogs of tests need not survive a power cut; a killed process loses nothing."""
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute("PRAGMA synchronous=OFF")


def pytest_ignore_collect(collection_path, config) -> bool | None:
    """Do not even import the folders of other tiers when only fast tests are asked for."""
    path = collection_path.relative_to(HERE) if collection_path.is_relative_to(HERE) else None
    slow = {folder for folders, _, _ in TIERS.values() for folder in folders}
    if config.option.markexpr == "fast" and path and str(path) in slow:
        return True
    return None


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, config) -> None:
    """List the modules that took longest, where durations were asked for."""
    if not config.option.durations:
        return
    seconds, slowest = Counter(), 40
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration") and hasattr(report, "nodeid"):
                seconds[report.nodeid.split("::")[0].removeprefix("tests/")] += report.duration
    terminalreporter.section(f"slowest modules of {sum(seconds.values()):.0f} s")
    listed = [f"{spent:.0f} s {name}" for name, spent in seconds.most_common(slowest)]
    for at in range(0, len(listed), 3):
        terminalreporter.line(" ".join(f"{one:52}" for one in listed[at : at + 3]).rstrip())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep modules together that share what is made anew in each process."""
    return UnitScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_sessionstart(session) -> None:
    """Bring the stores while tests are collected and the first ones of the whole suite do without."""
    option = session.config.option
    if getattr(option, "numprocesses", None) and option.markexpr in ("", "not long"):
        for name, server in control.servers().items():
            given = name, server, session.config._tmp_path_factory
            threading.Thread(target=_fetch, args=given, daemon=True).start()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Take away what Airflow's import logs to: pytest's capture, which ends before the last threads do."""
    for handler in logging.root.handlers[:]:
        if type(handler) is logging.StreamHandler:
            logging.root.removeHandler(handler)


def pytest_collection_finish() -> None:
    """Leave what is collected out of every later search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items) -> None:
    """Mark each test with its tier, and run the folders of :data:`LONG` first, in that order."""
    for item in items:
        item.add_marker(tier(item))
    items.sort(key=turn)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Measure the fast tests alone: coverage slows the others and their fixtures, and most of it is done
    elsewhere."""
    plugin = item.config.pluginmanager.getplugin("_cov")
    controller = plugin and plugin.cov_controller
    if controller is None or tier(item) == "fast":
        return (yield)
    controller.pause()
    try:
        return (yield)
    finally:
        controller.resume()


def tier(item):
    """Return the name of the test's tier: the first that applies, else ``fast``."""
    path = item.path.relative_to(HERE)
    # A parameter may name the server that the test is to use.
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    used = {*item.fixturenames, *(one for one in parameters if isinstance(one, str))}
    for name, (folders, fixtures, modules) in TIERS.items():
        if (
            any(path.is_relative_to(folder) for folder in folders)
            or not fixtures.isdisjoint(used)
            or not modules.isdisjoint(imported(item.module))
        ):
            return name
    return "fast"


@cache
def imported(module):
    """Return the names of the modules that a test's module imports, itself or through ``support``."""
    values = vars(module).values()
    helpers = {getattr(found, "__module__", None) or getattr(found, "__name__", "") for found in values}
    helpers = {name for name in helpers if isinstance(name, str) and name.startswith("support.")}
    seen = (module, *(sys.modules[name] for name in helpers))
    return {found.__name__ for one in seen for found in vars(one).values() if isinstance(found, ModuleType)}


def turn(item):
    """The first of :data:`LONG` that holds the test, by its place there."""
    path = item.path.relative_to(HERE)
    return next((at for at, folder in enumerate(LONG) if path.is_relative_to(folder)), len(LONG))


@pytest.fixture
def config(tmp_path):
    """The file of a small configuration: two IOTA networks and Wormhole, inputs of a few bytes."""
    for folder in ("shimmer", "testnet/2022", "wormhole"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "blocks.jsonl").write_text("{}\n")
    (tmp_path / "prices.csv").write_text("time,price\n")
    file = tmp_path / "permalake.toml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def settings(config):
    return load_settings(config)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One real local Spark session with the jars of the lake and the stores, for the whole run, set as the
    DAG's jobs set it for small inputs."""
    jars.resolve(jars.STORE_COORDINATES)
    created = session(
        "permalake-tests",
        **{
            "spark.master": "local[2]",
            "spark.driver.extraClassPath": class_archive.class_path(),
            "spark.jars": jars.class_path(jars.STORE_COORDINATES),
            "spark.driver.memory": "2g",
            "spark.driver.extraJavaOptions": " ".join(
                (SHORT_LIVED, ROOMY, "-XX:ReservedCodeCacheSize=240m", class_archive.java_options())
            ),
            **FORGETFUL,
            "spark.ui.enabled": "false",
            "spark.python.daemon.module": WORKER_DAEMON,
            **SMALL_CONF,
            "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        },
    )
    created.sparkContext.setLogLevel("ERROR")
    yield created
    created.stop()


@pytest.fixture(scope="module", autouse=True)
def nothing_stays_cached():
    """Each query is compared with all frames that are cached, and those fill the heap."""
    yield
    sql = sys.modules.get("pyspark.sql")
    if sql and (active := sql.SparkSession.getActiveSession()):
        active.catalog.clearCache()


@pytest.fixture(scope="session")
def cassandra_server(tmp_path_factory):
    """A real Cassandra on a free port, for the whole run."""
    yield from _server("cassandra", tmp_path_factory)


@pytest.fixture(scope="module")
def own_cassandra_server(tmp_path_factory):
    """A Cassandra that no other module writes into: keyspaces are named by the network."""
    yield from _server("cassandra", tmp_path_factory)


@pytest.fixture
def mortal(tmp_path):
    """A Cassandra that the test may stop or kill."""
    server = control.servers(free_port(), free_port(), tmp_path)["cassandra"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", SHORT_LIVED)
        server.up()
        yield server
    server.daemon.stop()


@pytest.fixture(scope="session")
def bigtable_server(tmp_path_factory):
    """A real Bigtable emulator on a free port, for the whole run."""
    yield from _server("bigtable", tmp_path_factory)


@pytest.fixture(scope="session")
def undisturbed(undisturbed_settings):
    """What a run of the bundled day publishes that nobody disturbs."""
    return whole_runs.rows(undisturbed_settings, "shimmer")


@pytest.fixture(scope="session")
def undisturbed_settings(tmp_path_factory):
    """The configuration of a lake with the bundled day: built once, for all test processes."""
    folder = _shared(tmp_path_factory) / "undisturbed"
    with _locked(tmp_path_factory, "undisturbed"):
        # Written once: another process may be reading it.
        if not (folder / "built").exists():
            whole_runs.finish(whole_runs.configuration(folder))
            (folder / "built").touch()
    return folder / "permalake.toml"


@pytest.fixture(scope="session")
def extended_duckdb(tmp_path_factory):
    """A DuckDB with the extensions httpfs and iceberg: installed once, for all test processes."""
    from support.extended_duckdb import ExtendedDuckDB

    with _locked(tmp_path_factory, "duckdb"):
        return ExtendedDuckDB(_shared(tmp_path_factory) / "duckdb")


@pytest.fixture(scope="session")
def whole_lake(tmp_path_factory):
    """A lake of both synthetic tangles and Wormhole's world: built once, for all test processes."""
    from support import whole_server

    with _locked(tmp_path_factory, "whole"):
        return whole_server.whole_lake(_shared(tmp_path_factory) / "whole")


def _shared(tmp_path_factory):
    """The folder of this run, which its test processes share."""
    own = Path(tmp_path_factory.getbasetemp())
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextmanager
def _locked(tmp_path_factory, name):
    """One test process at a time."""
    with (_shared(tmp_path_factory) / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def secured_cassandra(tmp_path_factory):
    """The settings of a role at a real Cassandra that wants a login, and TLS with certificates of both."""
    from support import secured_cassandra as secured

    folder = tmp_path_factory.mktemp("secured")
    node = secured.node(folder)
    with contextmanager(_started)("cassandra", node, tmp_path_factory):
        yield secured.writer(node)


def _server(name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("services")
    yield from _started(name, control.servers(free_port(), free_port(), folder)[name], tmp_path_factory)


def _started(name, server, tmp_path_factory):
    from support import cassandra_rows

    patch = pytest.MonkeyPatch()
    patch.setenv("JDK_JAVA_OPTIONS", f"{SHORT_LIVED} {SCHEMA_IN_MEMORY} {COARSE_CLOCK}")
    _fetch(name, server, tmp_path_factory)
    with _locked(tmp_path_factory, "jars"):
        jars.resolve(jars.STORE_COORDINATES)
    server.up()
    patch.undo()
    yield server
    cassandra_rows.close()
    server.daemon.stop()


def _fetch(name, server, tmp_path_factory):
    """Bring a server where it is missing; two processes would bring it into the same place."""
    with _locked(tmp_path_factory, f"fetch-{name}"):
        server.fetch()


@pytest.fixture(scope="session")
def served_settings(tmp_path_factory):
    """The settings of a lake with both synthetic IOTA worlds, written once per process."""
    from support import served_lakes

    settings = served_lakes.settings_of(tmp_path_factory.mktemp("served"))
    served_lakes.write(settings)
    return settings


@pytest.fixture(scope="session")
def stored_settings(served_settings, cassandra_server):
    """The settings of a server that reads that lake's networks from Cassandra, which has them."""
    from support import served_stores

    settings = served_stores.with_cassandra(served_settings, cassandra_server.port)
    served_stores.fill_cassandra(settings)
    return settings


@pytest.fixture(scope="session", params=["lake", "cassandra_server"])
def api(request, served_settings, tmp_path_factory):
    """A client of the REST API over that lake, in this process, read from each backend."""
    settings = served_settings if request.param == "lake" else request.getfixturevalue("stored_settings")
    with _client(settings, tmp_path_factory.mktemp("index")) as client:
        yield client


@contextmanager
def _client(settings, index):
    from fastapi.testclient import TestClient

    from permalake.api.app import create_app
    from permalake.domains import domain_of
    from permalake.lake.serving import LakeReader

    reader = LakeReader(settings, domain_of, cache=index)
    with TestClient(create_app(settings, reader)) as client:
        yield client
