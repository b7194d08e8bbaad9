"""What the docs name is there: files, modules, functions, settings, layers."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from itertools import product
from pathlib import Path

import pytest
import typer
from pydantic import BaseModel

from permalake import config
from permalake.cli.main import COMMANDS, app
from permalake.config import Settings
from permalake.paths import ROOT

PACKAGE = ROOT / "include" / "permalake"
RUNBOOKS = sorted((ROOT / "docs" / "runbooks").glob("*.md"))
GUIDES = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", *RUNBOOKS]
PROSE = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *RUNBOOKS,
]
# A path in a guide starts in one of these folders, as readers and editors do.
STARTS = (ROOT, ROOT / "include", PACKAGE, ROOT / "docs", ROOT / "docs" / "runbooks", ROOT / "tests")
SUFFIXES = (".py", ".md", ".toml", ".txt", ".in", ".json", ".sha256", ".yml", ".svg", ".ipynb", ".cql")
# Files of a lake or of a user, not of this repository.
ELSEWHERE = re.compile(r"^(/|WAREHOUSE|PERMALAKE_HOME|\.venv|\.permalake)")
FOREIGN = {"with", "iceberg_tables"}
"""A word of Python's, a table of PyIceberg's."""
COMMAND = re.compile(r"permalake |python |airflow |docker |mv |cp |aws |[\w.]+ = ")
FILLED_IN = re.compile(r"…|\b[A-Z][A-Z_:]*\b|\b\d[\d-]*\b")
COMPOSED = {"is being maintained by run"}
"""A message that the code puts together from words."""


def code_of(file: Path) -> list[str]:
    """Return what stands between backticks in the text, with line breaks as spaces."""
    text = re.sub(r"^(```|    ).*?$", "", file.read_text("utf-8"), flags=re.MULTILINE)
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", text)]


def alternatives(path: str) -> list[str]:
    """Return the paths of one with ``{a,b}``; ``{name}`` matches any, and so does TABLE."""
    parts = [
        part.strip("{}").split(",") if "," in part else ["*"] if part.startswith("{") else [part]
        for part in re.split(r"(\{[^}]*\})", path)
    ]
    paths = ("".join(chosen) for chosen in product(*parts))
    return ["/".join(re.sub(r"^TABLE(?=\.)", "*", part) for part in whole.split("/")) for whole in paths]


def exists(path: str) -> bool:
    """Return whether every alternative of a path is in the repository."""
    return all(
        any(next(start.glob(place.rstrip("/")), None) for start in STARTS) for place in alternatives(path)
    )


def is_path(code: str) -> bool:
    """Return whether a piece of code is a path of this repository."""
    if " " in code or ELSEWHERE.match(code) or "(" in code or "://" in code:
        return False
    return "/" in code or code.endswith(SUFFIXES)


@cache
def file_names() -> set[str]:
    """Return the names of the repository's files, without their folders."""
    return {file.name for folder in (PACKAGE, ROOT / "docs") for file in folder.rglob("*")} | {
        file.name for file in ROOT.iterdir()
    }


def modules_named(path: str) -> list[Path]:
    """Return the modules whose path ends so; ``{a,b}`` stands for either."""
    below = path.removeprefix("include/permalake/")
    return [module for ending in alternatives(below) for module in PACKAGE.rglob(ending)]


@cache
def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    lines = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@cache
def options(command: str) -> set[str]:
    """Return the options of a command of ``permalake`` and of its own commands."""
    group = typer.main.get_command(app)
    verb = group.get_command(None, command)  # type: ignore[attr-defined]
    below = getattr(verb, "commands", {}).values()
    return {"--help"} | {
        option
        for each in (group, verb, *below)
        for parameter in each.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }


def sections(model: type[BaseModel]) -> set[type[BaseModel]]:
    """Return the classes of settings that a class holds, itself left out."""
    held: set[type[BaseModel]] = set()
    for field in model.model_fields.values():
        for part in re.findall(r"permalake\.config\.(\w+)", str(field.annotation)):
            section = getattr(config, part)
            if isinstance(section, type) and issubclass(section, BaseModel):
                held |= {section} | sections(section)
    return held


@cache
def names_in(file: Path) -> frozenset[str]:
    """Return what a module is called, defines, takes, imports, keeps in fields, and spells as text."""
    names = {file.stem, file.parent.name}
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
            case ast.arg(arg=name) | ast.alias(name=name):
                names.add(name)
            case ast.Constant(value=str(text)) if text.isidentifier():
                names.add(text)
    return frozenset(names)


@cache
def names_in_code() -> frozenset[str]:
    """Return the names of all modules that guides speak of."""
    folders = (PACKAGE, ROOT / "expectations", ROOT / "dags")
    files = (*(ROOT / "tests").glob("*.py"), *(file for folder in folders for file in folder.rglob("*.py")))
    return frozenset().union(*map(names_in, files))


@cache
def texts_in_code() -> str:
    """Return all text of the package's modules, with an ellipsis where a value is filled in."""
    texts: list[str] = []
    for module in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


def unknown_names(file: Path) -> list[str]:
    """Return the names of modules, functions, settings, tables and columns in a guide that nothing has."""
    names = [re.sub(r"\(.*\)$", "", code) for code in code_of(file)]
    dotted = [name for name in names if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name)]
    return [
        name
        for name in dotted
        if name not in file_names()
        and name.partition(".")[0] not in sys.stdlib_module_names
        and not set(name.split(".")) <= names_in_code() | FOREIGN
    ]


@pytest.mark.parametrize("file", GUIDES, ids=lambda file: file.stem)
def test_guides_name_what_is_there(file: Path) -> None:
    paths = [code for code in code_of(file) if is_path(code)]
    bare = {path for path in paths if "/" not in path} & (file_names() | {".venv"})
    assert [path for path in paths if path not in bare and not exists(path)] == []
    assert unknown_names(file) == []


@pytest.mark.parametrize("file", GUIDES, ids=lambda file: file.stem)
def test_guides_name_functions_in_the_files_that_have_them(file: Path) -> None:
    text = " ".join(file.read_text("utf-8").split())
    pairs = re.findall(r"`(\w+)(?:\([^`]*\))?` (?:of|in) `([^` ]+\.py)`", text)
    absent = [
        (name, path)
        for name, path in pairs
        if not any(name in names_in(module) for module in modules_named(path))
    ]
    assert absent == []


@pytest.mark.parametrize("file", RUNBOOKS, ids=lambda file: file.stem)
def test_runbooks_quote_messages_as_the_code_has_them(file: Path) -> None:
    messages = [code for code in code_of(file) if len(code.split()) >= 4 and not COMMAND.match(code)]
    parts = [part.strip(" ,.;:") for message in messages for part in FILLED_IN.split(message)]
    assert [
        part for part in parts if " " in part and part not in texts_in_code() and part not in COMPOSED
    ] == []


@pytest.mark.parametrize("file", PROSE, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(file: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)", file.read_text("utf-8"))
    assert [target for target, _ in targets if not (file.parent / target).exists()] == []
    anchors = [(file.parent / target, anchor[1:]) for target, anchor in targets if anchor]
    assert [(page.name, anchor) for page, anchor in anchors if anchor not in headings(page)] == []


@pytest.mark.parametrize("file", PROSE, ids=lambda file: str(file.relative_to(ROOT)))
def test_commands_in_the_docs_exist(file: Path) -> None:
    text = file.read_text("utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", text)) - targets == set()
    assert set(re.findall(r"`permalake (--[a-z-]+)", text)) <= {"--help"}
    commands = re.findall(r"(?:`|^ {4}|\.venv/bin/)permalake ([a-z]+)([^`\n]*)", text, re.MULTILINE)
    assert {name for name, _ in commands} - set(COMMANDS) == set()
    absent = {
        (name, option)
        for name, rest in commands
        for option in re.findall(r"(?<= )(--[a-z-]+)", " " + rest)
        if option not in options(name)
    }
    assert absent == set()


def test_architecture_has_every_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    declared = {
        contract["name"].partition(":")[0]: contract.get("layers")
        for contract in project["tool"]["importlinter"]["contracts"]
    }
    layers, of_domain = declared["Layers of the library"], declared["Layers of a domain"]
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    rows = [re.findall(r"`(\w+)`", row) for row in table]
    listed = {name for row in rows for name in row}
    packages = {name for layer in layers for name in re.findall(r"\w+", layer)}
    assert listed == packages
    level = {name: number for number, layer in enumerate(layers) for name in re.findall(r"\w+", layer)}
    order = [level[name] for row in rows for name in row]
    assert order == sorted(order), "the table follows the layers of pyproject.toml"
    picture = (ROOT / "docs" / "packages.svg").read_text("utf-8")
    assert packages - set(re.findall(r">(\w+)</text>", picture)) == set()
    for name in re.findall(r"\w+", " ".join(of_domain)):
        assert re.search(rf"`[\w/]*\b{name}\b", text), name


def test_every_setting_is_documented() -> None:
    text = "\n".join(file.read_text("utf-8") for file in PROSE)
    code = " ".join(re.findall(r"`([^`]+)`", re.sub(r"^```.*$", "", text, flags=re.MULTILINE)))
    assigned = set(re.findall(r"^#? *(\w+) *[:=]", text, re.MULTILINE))
    documented = set(re.findall(r"\w+", code)) | assigned
    assert {
        f"{section.__name__}.{key}"
        for section in sections(Settings)
        for key in section.model_fields
        if key not in documented
    } == set()


def test_every_variable_is_in_the_table() -> None:
    text = (ROOT / "docs" / "operating.md").read_text("utf-8")
    chapter = text.partition("\n## Variables\n")[2].partition("\n## ")[0]
    files = [
        *PACKAGE.rglob("*.py"),
        *(file for file in (ROOT / "docker").rglob("*") if file.is_file()),
        ROOT / "docker-compose.yml",
    ]
    read = {
        name
        for file in files
        for name in re.findall(r"\bPERMALAKE_[A-Z0-9_]+\b", file.read_text("utf-8"))
        if "__" not in name and not name.endswith("_")
    }
    assert read == set(re.findall(r"`(PERMALAKE_[A-Z0-9_]+)`", chapter)) - {"PERMALAKE_SECTION__KEY"}
