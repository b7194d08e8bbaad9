"""The verification of a Wormhole day's input, for the day's manifest."""

from __future__ import annotations

from permalake.config import Settings
from permalake.transparency.documents import Evidence, SignedGuardians
from permalake.transparency.manifest import Rows, counts
from permalake.wormhole.reference import load_reference

_RULES = (
    "Every signature of a VAA recovers to the guardian of its index, over the double keccak256 of the body.",
    "Guardian indices rise, and at least two thirds of the set and one guardian more have signed.",
    "VAAs of one identity with different digests are published neither.",
)


def evidence(settings: Settings, network: str, rows: Rows) -> Evidence:  # noqa: ARG001
    """Return the rules, and the guardian sets that signed the day's VAAs, with their guardians."""
    reference = load_reference(settings.wormhole.reference if settings.wormhole else None)
    signed = counts(
        rows("message_publication").to_table(columns=["guardian_set_index"]), "guardian_set_index"
    )
    sets: dict[str, SignedGuardians] = {}
    for index, messages in signed.items():
        guardians = reference.guardian_sets.get(int(index), ())
        sets[index] = {
            "messages": messages,
            "quorum": len(guardians) * 2 // 3 + 1,
            "guardians": [f"0x{guardian.hex()}" for guardian in guardians],
        }
    return {"rules": list(_RULES), "guardian_sets": sets}
