"""Proofs of inclusion as ``permalake verify`` checks them: that a block was in the Tangle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.transparency.proofs import InvalidProofError

_SHOWN = {
    "inclusion": "milestone {index} references this block, so it was part of the Tangle by then.",
    "applied": "milestone {index} applied this block's transaction to the ledger.",
    "path": "milestone {index} references this message, by the messages between them.",
}


def report_inclusion(settings: Settings, network: str | None, proof: dict[str, Any]) -> Iterator[str]:
    """Yield in words what a proof of inclusion shows (``/api/poi/v1``).

    ``network``: the network whose coordinator keys count; without it, the only one of the proof's protocol.

    Raises:
        ConfigError: if it is not clear whose keys count, or there are none.
        InvalidProofError: if the proof does not hold for them.
    """
    from permalake.iota.codec.faults import MalformedJsonError
    from permalake.iota.codec.inclusion_proof import PATH_VERSION
    from permalake.iota.rest.proofs import Kind, index_of, is_valid
    from permalake.transparency.report import PROVEN, RESTS_ON

    name = network or only_network(settings, proof)
    section = settings.network(name)
    if not section.coordinator_public_keys:
        raise ConfigError(f"networks.{name}.coordinator_public_keys: set them; the proof rests on these keys")
    kinds: tuple[Kind, ...] = ("applied", "inclusion")
    if section.protocol == "chrysalis":
        kinds = ("path",) if proof.get("version") == PATH_VERSION else ("applied",)
    try:
        shown = next((kind for kind in kinds if is_valid(section, proof, kind)), None)
    except MalformedJsonError as error:
        raise InvalidProofError(f"the proof is damaged: {error}") from None
    if shown is None:
        raise InvalidProofError(f"the proof does not hold for the coordinator's keys of {name}")
    yield f"{name}: the proof holds."
    yield PROVEN
    yield f"  {_SHOWN[shown].format(index=index_of(proof))}"
    yield RESTS_ON
    yield f"  the coordinator keys in networks.{name}: compare them with the network's own word."


def only_network(settings: Settings, proof: dict[str, Any]) -> str:
    """Return the network that a proof of this kind may be of, if there is just one."""
    protocol = "stardust" if "block" in proof else "chrysalis"
    named = [name for name, network in settings.networks.items() if network.protocol == protocol]
    if len(named) != 1:
        raise ConfigError(
            f"whose proof is it? choose with --network: {', '.join(named) or 'none is configured'}"
        )
    return named[0]
