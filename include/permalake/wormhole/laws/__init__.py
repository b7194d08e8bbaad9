"""Laws of a Wormhole day: what holds across its tables.

A law stands in the module of its topic, beside the code that computes its sides; ``LAWS`` lists a module's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from permalake.audit.laws import Law


def laws() -> tuple[Law, ...]:
    """Return all laws of the domain. Loads PySpark."""
    from permalake.wormhole.laws import (
        application_laws,
        event_laws,
        governor_laws,
        redemption_laws,
        sum_laws,
        value_laws,
    )

    modules = (event_laws, value_laws, governor_laws, sum_laws, application_laws, redemption_laws)
    return tuple(law for module in modules for law in module.LAWS)
