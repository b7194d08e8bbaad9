"""The shell of `permalake query`, on a terminal of its own."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from permalake.cli.shell import Completer, words_of
from permalake.config import load_settings
from permalake.errors import PermalakeError
from permalake.lake import iceberg_tables
from support.lakes import DAY1, OpenLake, build

COLUMNS = (
    '[{"network": "shimmer", "table_name": "messages", "names": ["message_id", "date"]},'
    ' {"network": "chrysalis-mainnet", "table_name": "tags", "names": ["tag"]}]'
)
TOML = """
[lake]
warehouse = "warehouse"
[networks.shimmer]
protocol = "stardust"
bech32_hrp = "smr"
path = "archive"
"""
LEAN = """
import sys
sys.argv = ["permalake", "query", "select 1", "--config", {config!r}]
import permalake.cli.query, permalake.query_process as own

def in_this_process(work, arguments, limits):
    parts = []
    work(parts.append, *arguments)
    loaded = {{"pandas", "pyiceberg", "pyspark", "httpx", "fastapi", "jinja2"}} & sys.modules.keys()
    assert not loaded, loaded
    return parts

permalake.cli.query.in_own_process = in_this_process
permalake.cli.query.limit_memory = lambda limits: None
from permalake.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    file = tmp_path_factory.mktemp("shell") / "permalake.toml"
    file.write_text(TOML, "utf-8")
    settings = load_settings(file)
    build(settings, OpenLake(settings), DAY1, 17339, 3, "run")
    return file


def completions(word: str, line: str = "") -> list[str]:
    completer = Completer(lambda: words_of(json.loads(COLUMNS)), lambda: line or word)
    found = iter(range(100))
    return [text for number in found if (text := completer(word, number)) is not None]


def test_tables_and_columns_are_completed() -> None:
    assert completions("shim") == ["shimmer.messages"]
    assert completions("chrys") == ['"chrysalis-mainnet".tags']
    assert completions('"chrys') == ['"chrysalis-mainnet".tags']
    assert completions("shimmer.messages.d") == ["shimmer.messages.date"]
    assert completions("mess", "select mess from shimmer.messages") == ["message_id"]
    assert completions("ta", "select ta from shimmer.messages") == []
    assert "having" in completions("hav")


def test_a_lake_that_does_not_answer_completes_nothing() -> None:
    def load():
        raise PermalakeError("lake.catalog: locked")

    assert Completer(load, lambda: "shim")("shim", 0) is None


class Terminal:
    """A shell on a pseudo terminal."""

    def __init__(self, config, home):
        own, other = pty.openpty()
        environment = os.environ | {"PERMALAKE_HOME": str(home), "TERM": "dumb", "COLUMNS": "120"}
        command = [sys.executable, "-m", "permalake.cli.main", "query", "--config", str(config)]
        self.process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env=environment)
        os.close(other)
        self.own = own

    def until(self, pattern: str, seconds: float = 120.0) -> str:
        text, deadline = "", time.monotonic() + seconds
        while not re.search(pattern, text):
            assert time.monotonic() < deadline, text
            if select.select([self.own], [], [], 1.0)[0]:
                text += os.read(self.own, 65536).decode().replace("\a", "")  # the bell of a completion
        return text

    def send(self, text: str) -> None:
        os.write(self.own, text.encode())


def test_statements_are_answered_until_the_user_leaves(config, tmp_path) -> None:
    shell = Terminal(config, tmp_path)
    shell.until("permalake> ")
    shell.send("select count(*) * 14\n")
    shell.until(r"\.\.\.> ")
    shell.send("as answer from shimmer.messages;\n")
    assert re.search(r"answer.*\b42\b", shell.until("permalake> $"), re.DOTALL)
    shell.send("delete from shimmer.messages;\n")
    assert "is not allowed" in shell.until("permalake> $")
    shell.send("select * from shimmer.mesages;\n")
    assert "did you mean shimmer.messages" in shell.until("permalake> $")
    shell.send("select count(*) from shimmer.mess\t")
    assert "Warning" not in shell.until("shimmer.messages")
    shell.send(";\n")
    assert re.search(r"\b3\b", shell.until("permalake> $"))
    shell.send("exit\n")
    assert shell.process.wait(60) == 0
    history = tmp_path / "query_history"
    assert "as answer from shimmer.messages;" in history.read_text("utf-8")
    assert history.stat().st_mode & 0o077 == 0


def test_a_query_loads_what_it_needs_and_no_more(config) -> None:
    """What it leaves out took more than half of its time."""
    code = LEAN.format(config=str(config))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert " 1 " in done.stdout


def test_the_catalog_s_tables_are_those_of_pyiceberg() -> None:
    from pyiceberg.catalog.sql import SqlCatalogBaseTable

    def described(metadata):
        return {
            table.name: [(one.name, str(one.type), one.primary_key, one.nullable) for one in table.columns]
            for table in metadata.sorted_tables
        }

    assert described(iceberg_tables.metadata) == described(SqlCatalogBaseTable.metadata)
