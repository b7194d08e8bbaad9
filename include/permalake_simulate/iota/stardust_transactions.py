"""The composition of a synthetic Stardust ledger: transfers, life cycles of chains, and flaws."""

from __future__ import annotations

from random import Random

from permalake_simulate.iota import stardust_chains as chains
from permalake_simulate.iota.owners import Owners
from permalake_simulate.iota.stardust_flaws import flawed
from permalake_simulate.iota.stardust_ledger import Maker, StardustLedger
from permalake_simulate.iota.tag_choice import SimulatedTags
from permalake_simulate.iota.tangle_world import IotaWorld
from permalake_simulate.iota.wallets import Wallets

LIVES: tuple[tuple[float, Maker], ...] = (
    (0.04, chains.mint_nft),
    (0.06, chains.move_nft),
    (0.03, chains.create_alias),
    (0.06, chains.move_alias),
    (0.01, chains.destroy_alias),
    (0.03, chains.found),
    (0.01, chains.dissolve),
    (0.02, chains.change_supply),
)


def stardust_ledger(
    world: IotaWorld, wallets: Wallets, rng: Random, *, owners: Owners, tagger: SimulatedTags
) -> StardustLedger:
    """Return an empty ledger whose epoch holds every kind of transaction."""
    return StardustLedger(world, wallets, rng, owners=owners, tagger=tagger, lives=LIVES, flaw=flawed)
