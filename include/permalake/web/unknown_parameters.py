"""Which query parameters a route knows, and what is said of one that it does not."""

from __future__ import annotations

from collections.abc import Collection
from difflib import SequenceMatcher

from fastapi.dependencies.utils import get_flat_dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from permalake.sanitize import shown


def parameters_of(route: APIRoute) -> set[str]:
    """Return the query parameters that a route declares."""
    names = set()
    for field in get_flat_dependant(route.dependant).query_params:
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            names |= {inner.alias or name for name, inner in model.model_fields.items()}
        else:
            names.add(field.alias)
    return names


def unknown_parameter(name: str, declared: Collection[str]) -> str:
    """Return what is wrong with a parameter that is not declared, and which one may be meant."""
    if not declared:
        return f"{shown(name, 40)}: unknown parameter; there is none here"

    def likeness(other: str) -> float:
        return SequenceMatcher(None, name[:40].casefold(), other.casefold()).ratio()

    nearest = max(sorted(declared), key=likeness)
    listed = ", ".join(sorted(declared))
    return f"{shown(name, 40)}: unknown parameter; the nearest one is {nearest} (there are {listed})"
