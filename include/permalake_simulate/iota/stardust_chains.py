"""Life cycles of NFTs, aliases and foundries in a synthetic tangle (TIP-18)."""

from __future__ import annotations

from dataclasses import replace

from permalake.iota.codec.encode_outputs import NO_ID, Address, NativeToken, Output
from permalake.iota.codec.outputs import ALIAS, ALIAS_ADDRESS, BASIC, FOUNDRY, NFT
from permalake_simulate.iota.amounts import LEAST
from permalake_simulate.iota.epoch_ledger import Draft, SimulatedCoin, Spend, owned
from permalake_simulate.iota.spine import hashed
from permalake_simulate.iota.stardust_ledger import StardustLedger

ALIAS_UNLOCK = 2
_BURNT = 0.15


def chain_id(coin: SimulatedCoin) -> bytes:
    """Return the id of an alias or NFT: a new one's is the hash of its output's id."""
    return coin.output.chain_id if coin.output.chain_id != NO_ID else hashed(coin.output_id)


def mint_nft(ledger: StardustLedger) -> Draft | None:
    """Return the mint of an NFT, issued by who pays for it."""
    spends = ledger.spends("plain", 1)
    if not spends or spends[0].coin.output.amount < 3 * LEAST:
        return None
    nft = Output(
        NFT,
        2 * LEAST,
        owned(ledger.somebody().address),
        issuer=_me(spends[0]),
        immutable_metadata=b'{"standard":"IRC27","version":"v1.0","type":"image/png","uri":"ipfs://synthetic",'
        b'"name":"synthetic %d","collectionName":"Synthetic"}' % ledger.rng.randrange(10**6),
        metadata=b"synthetic" if ledger.rng.random() < 0.3 else b"",
        tag=b"nft" if ledger.rng.random() < 0.3 else b"",
    )
    return ledger.draft(spends, [nft, *ledger.shared(spends[0].coin.output.amount - nft.amount, 2)])


def move_nft(ledger: StardustLedger) -> Draft | None:
    """Return the transfer of an NFT to a new owner, or its end."""
    coin = ledger.pick("nft")
    if coin is None:
        return None
    if ledger.rng.random() < _BURNT:
        return ledger.draft([ledger.spend(coin)], ledger.shared(coin.output.amount, 1))
    moved = replace(
        coin.output, chain_id=chain_id(coin), address=owned(ledger.somebody().address), tag=b"", metadata=b""
    )
    return ledger.draft([ledger.spend(coin)], [moved])


def create_alias(ledger: StardustLedger) -> Draft | None:
    """Return the creation of an alias; state controller and governor may be one."""
    spends = ledger.spends("plain", 1)
    if not spends or spends[0].coin.output.amount < 4 * LEAST:
        return None
    controller = ledger.somebody()
    governor = controller if ledger.rng.random() < 0.3 else ledger.somebody()
    alias = Output(
        ALIAS,
        3 * LEAST,
        state_controller=owned(controller.address),
        governor=owned(governor.address),
        issuer=_me(spends[0]) if ledger.rng.random() < 0.5 else None,
        state_metadata=b"state 0",
    )
    return ledger.draft(spends, [alias, *ledger.shared(spends[0].coin.output.amount - alias.amount, 1)])


def move_alias(ledger: StardustLedger) -> Draft | None:
    """Return a state transition, or one of governance that names a new state controller."""
    coin = ledger.pick("alias")
    if coin is None:
        return None
    if ledger.rng.random() < 0.3:
        governed = replace(
            coin.output,
            chain_id=chain_id(coin),
            state_controller=owned(ledger.somebody().address),
            sender=None,
        )
        return ledger.draft([governing(ledger, coin)], [governed])
    return ledger.draft([controlling(ledger, coin)], [next_state(coin)])


def destroy_alias(ledger: StardustLedger) -> Draft | None:
    """Return the end of an alias without foundries, by its governor."""
    coin = ledger.pick("alias")
    if coin is None or coin.output.foundry_counter:
        return None
    return ledger.draft([governing(ledger, coin)], ledger.shared(coin.output.amount, 1))


def found(ledger: StardustLedger) -> Draft | None:
    """Return a transaction in which an alias opens a foundry and mints all its tokens into one output."""
    coin, spends = ledger.pick("alias"), ledger.spends("plain", 1)
    if coin is None or not spends or spends[0].coin.output.amount < 3 * LEAST:
        return None
    alias = replace(next_state(coin), foundry_counter=coin.output.foundry_counter + 1)
    serial, supply = alias.foundry_counter, 1 + ledger.rng.getrandbits(ledger.rng.choice((20, 64, 200)))
    home = Address(ALIAS_ADDRESS, alias.chain_id)
    foundry = Output(
        FOUNDRY,
        LEAST,
        home,
        serial_number=serial,
        minted=supply,
        maximum=supply * 2,
        metadata=b"synthetic",
        immutable_metadata=b'{"standard":"IRC30","name":"Synthetic","symbol":"SYN","decimals":6}',
    )
    token = NativeToken(home.pack() + serial.to_bytes(4, "little") + b"\0", supply)
    holder = Output(
        BASIC,
        spends[0].coin.output.amount - LEAST,
        owned(ledger.somebody().address),
        native_tokens=(token,),
    )
    draft = ledger.draft([controlling(ledger, coin), *spends], [alias, foundry, holder])
    draft.note = lambda: _keep_track(ledger, alias.chain_id, draft)
    return draft


def _keep_track(ledger: StardustLedger, alias: bytes, draft: Draft) -> None:
    """Remember the alias, the foundry and the holder of all its tokens, a draft's first three outputs."""
    at, foundry, held = (made.output_id for made in draft.coins)
    ledger.alias_at[alias] = at
    ledger.minted.append((alias, foundry, held))


def _still_there(ledger: StardustLedger) -> tuple[SimulatedCoin, SimulatedCoin, SimulatedCoin] | None:
    """Return an alias, its foundry and the holder of all tokens, if they have not moved since."""
    while ledger.minted:
        alias_id, foundry_id, held_id = ledger.minted.pop(ledger.rng.randrange(len(ledger.minted)))
        ids = (ledger.alias_at[alias_id], foundry_id, held_id)
        if any(output_id in ledger.taken for output_id in ids):
            continue
        alias, foundry, held = (ledger.unspent.get(output_id) for output_id in ids)
        if alias and foundry and held:
            return alias, foundry, held
    return None


def dissolve(ledger: StardustLedger) -> Draft | None:
    """Return the end of a foundry with all its tokens, if its alias and they have not moved since."""
    coins = _still_there(ledger)
    if coins is None:
        return None
    amount = coins[1].output.amount + coins[2].output.amount
    return ledger.draft(_spent(ledger, coins), [next_state(coins[0]), *ledger.shared(amount, 2)])


def change_supply(ledger: StardustLedger) -> Draft | None:
    """Return a foundry that mints more of its tokens, up to the maximum, or melts some."""
    coins = _still_there(ledger)
    if coins is None:
        return None
    foundry, held = coins[1].output, coins[2].output
    [token] = held.native_tokens
    room = foundry.maximum - token.amount
    grows = room > 0 and ledger.rng.random() < 0.5
    change = ledger.rng.randint(1, room) if grows else -ledger.rng.randrange(token.amount)
    foundry = replace(
        foundry, minted=foundry.minted + max(change, 0), melted=foundry.melted + max(-change, 0)
    )
    held = replace(held, native_tokens=(replace(token, amount=token.amount + change),))
    draft = ledger.draft(_spent(ledger, coins), [next_state(coins[0]), foundry, held])
    draft.note = lambda: _keep_track(ledger, chain_id(coins[0]), draft)
    return draft


def _spent(ledger: StardustLedger, coins: tuple[SimulatedCoin, SimulatedCoin, SimulatedCoin]) -> list[Spend]:
    alias, foundry, held = coins
    return [controlling(ledger, alias), Spend(foundry, None, ALIAS_UNLOCK, 0), ledger.spend(held)]


def next_state(coin: SimulatedCoin) -> Output:
    """Return an alias after a state transition."""
    index = coin.output.state_index + 1
    return replace(
        coin.output, chain_id=chain_id(coin), state_index=index, state_metadata=b"state %d" % index
    )


def controlling(ledger: StardustLedger, coin: SimulatedCoin) -> Spend:
    """Return an alias as an input of its state controller."""
    return Spend(coin, ledger.owners.of(coin.output.state_controller))


def governing(ledger: StardustLedger, coin: SimulatedCoin) -> Spend:
    """Return an alias as an input of its governor."""
    return Spend(coin, ledger.owners.of(coin.output.governor))


def _me(spend: Spend) -> Address:
    if spend.owner is None:
        raise ValueError("an issuer signs")
    return owned(spend.owner.address)
