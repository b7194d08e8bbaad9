"""Laws of a day of an IOTA network: what holds across its tables.

A law stands in the module of its topic, beside the code that computes its sides; ``LAWS`` lists a module's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from permalake.audit.laws import Law


def laws() -> tuple[Law, ...]:
    """Return all laws of the domain. Loads PySpark."""
    from permalake.iota.laws import (
        activity_laws,
        carried_laws,
        change_laws,
        count_laws,
        ledger_laws,
        message_laws,
        milestone_laws,
        root_laws,
        token_laws,
        treasury_laws,
        update_laws,
    )

    modules = (
        milestone_laws,
        message_laws,
        root_laws,
        ledger_laws,
        treasury_laws,
        token_laws,
        update_laws,
        count_laws,
        change_laws,
        activity_laws,
        carried_laws,
    )
    return tuple(law for module in modules for law in module.LAWS)
