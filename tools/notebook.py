"""``python tools/notebook.py docs/notebooks/analysts.ipynb``: runs a notebook and keeps what its cells show.

Cells run in one namespace of this process, without Jupyter. What a cell shows is the value of its last
expression: text, HTML, and PNG for charts.
"""

from __future__ import annotations

import ast
import base64
import json
import sys
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]
_LONGEST = 20_000


def run(notebook: Notebook) -> list[list[dict[str, Any]]]:
    """Run the code cells in order; return the outputs of each."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [
        _outputs(_value("".join(cell["source"]), f"cell {at}", namespace)) for at, cell in enumerate(cells, 1)
    ]


def _value(source: str, name: str, namespace: dict[str, Any]) -> Any:
    """Run a cell; return the value of its last expression, None where it ends in another statement."""
    body = ast.parse(source, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), name, "exec"), namespace)  # noqa: S102 - the notebook's own code
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), name, "eval"), namespace)  # noqa: S307 - as above


def _outputs(value: Any) -> list[dict[str, Any]]:
    if value is None:
        return []
    data = {"text/plain": _lines(repr(value))}
    for name, form in (("_repr_html_", "text/html"), ("_repr_mimebundle_", None)):
        if show := getattr(value, name, None):
            shown = show()
            data |= {form: _lines(shown)} if form else _bundle(shown)
    return [{"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}]


def _bundle(shown: Any) -> dict[str, Any]:
    """Return the pictures of a bundle of forms; it may come with its metadata."""
    forms = shown[0] if isinstance(shown, tuple) else shown
    return {
        form: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for form, value in forms.items()
        if form == "image/png"
    }


def _lines(text: str) -> list[str]:
    return text[:_LONGEST].splitlines(keepends=True)


def main() -> None:
    """Run the notebook, and write it with its outputs."""
    file = Path(sys.argv[1])
    notebook = json.loads(file.read_text("utf-8"))
    shown = iter(run(notebook))
    for number, cell in enumerate((one for one in notebook["cells"] if one["cell_type"] == "code"), 1):
        cell["outputs"], cell["execution_count"] = next(shown), number
        for output in cell["outputs"]:
            output["execution_count"] = number
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
