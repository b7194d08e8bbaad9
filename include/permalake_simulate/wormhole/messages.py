"""The messages of a synthetic Wormhole world: payloads, signatures, and bad VAAs of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from permalake_simulate.seeds import digest
from permalake_simulate.wormhole.application_messages import (
    emitted,
    ntt_transfer,
    query_response,
    received,
)
from permalake_simulate.wormhole.bridge_world import (
    CHAINS,
    NFT_BRIDGE,
    OTHER,
    SOLANA,
    TOKEN_BRIDGE,
    Emitter,
    Part,
    SyntheticToken,
    WormholeWorld,
    guardian_key,
)
from permalake_simulate.wormhole.encode_vaa import (
    body_digest,
    encode_asset_meta,
    encode_body,
    encode_nft_transfer,
    encode_transfer,
    encode_transfer_with_payload,
    encode_vaa,
)
from permalake_simulate.wormhole.message_facts import MessageFacts
from permalake_simulate.wormhole.observations import is_observed, observations
from permalake_simulate.wormhole.redemptions import Sent, operation, state_of
from permalake_simulate.wormhole.tally import Tally

Signatures = list[tuple[int, bytes]]
GOVERNANCE = bytes(31) + b"\x04"
_UNKNOWN_SET = 4_000_000
_MODULE = bytes(28) + b"Core"
# Shares of transfers with payload for applications, and of other contracts' messages with a known form.
_TO_APPLICATIONS = 0.5
_QUERIES, _UNLISTED = 0.1, 0.1
BAD = (
    "malformed",
    "unknown_guardian_set",
    "duplicate_guardian",
    "bad_signature",
    "no_quorum",
    "conflicting_digest",
)


class PartMaker:
    """The maker of one part's documents, a pure function of the world and the part."""

    def __init__(self, world: WormholeWorld, part: Part):
        self._world, self._part = world, part
        self._rng = Random(f"{world.seed}/part {part.number}")  # noqa: S311 (reproducible, not secret)
        self._set = world.guardian_set(part.day)
        self.tally = Tally()
        self.operations: list[str] = []
        self.observations: list[str] = []
        self._sent: Sent | None = None

    def documents(self) -> Iterator[str]:
        """Yield JSON lines as Wormholescan serves VAAs.

        ``operations`` and ``observations`` have its operations and observations then.
        """
        world, part, rng = self._world, self._part, self._rng
        for at in range(part.count):
            number = part.first + at
            time = world.midnight(part.day) + (part.begin + at) * 86_400 // part.of_day
            emitter, sequence = world.sender(number)
            is_governance = emitter.kind == OTHER and sequence % 50 == 49
            if is_governance:
                emitter = Emitter(OTHER, SOLANA, GOVERNANCE)
                sequence = number
            kind, payload = self._payload(emitter, sequence, is_governance)
            body = self._body(emitter, sequence, 0 if is_governance else time, payload)
            facts = MessageFacts(
                emitter, emitter.first + sequence, time, self._set, digest(world.seed, "tx", number)
            )
            if rng.random() < world.bad_share and not is_governance and kind != "attestations":
                for bad in self._bad(emitter, sequence, time, body):
                    yield self._document(facts, bad)
                continue
            signatures = self._signed(body, self._signers())
            yield self._document(facts, encode_vaa(self._set, signatures, body))
            if rng.random() < world.copy_share:
                fewer = signatures[: world.quorum]
                yield self._document(facts, encode_vaa(self._set, fewer, body))
            self.tally.published += 1
            if kind:
                setattr(self.tally, kind, getattr(self.tally, kind) + 1)
            self._add_operation(number, facts)
            if is_observed(world, number):
                self._add_observations(number, facts, body, signatures)

    def _add_operation(self, number: int, facts: MessageFacts) -> None:
        if self._sent is None:
            return
        seed = self._world.seed
        line = operation(
            seed, number, self._sent, emitter=facts.emitter, sequence=facts.sequence, time=facts.time
        )
        self.operations += [line] if line else []
        state = state_of(seed, number)
        counted = {"completed": "redeemed", "untold": "untold"}.get(state, "in_flight")
        setattr(self.tally, counted, getattr(self.tally, counted) + 1)

    def _add_observations(
        self, number: int, facts: MessageFacts, body: bytes, signatures: Signatures
    ) -> None:
        lines = list(observations(self._world, number, facts, body, dict(signatures)))
        self.observations += lines
        self.tally.observations += len(lines)

    def _document(self, facts: MessageFacts, vaa: bytes) -> str:
        self.tally.documents += 1
        return facts.document(vaa)

    def _payload(self, emitter: Emitter, sequence: int, is_governance: bool) -> tuple[str, bytes]:
        rng = self._rng
        self._sent = None
        if is_governance:
            fee = rng.randrange(10**6).to_bytes(32, "big")
            return "", _MODULE + b"\x03" + (0).to_bytes(2, "big") + fee
        if emitter.kind == TOKEN_BRIDGE:
            tokens = [token for token in self._world.tokens[emitter.chain] if token.attested]
            if sequence < len(tokens):
                return "attestations", _attestation(tokens[sequence])
            if rng.random() < 0.01:
                return "attestations", _attestation(rng.choice(tokens))
            return "token_transfers", self._transfer(emitter.chain)
        if emitter.kind == NFT_BRIDGE:
            return "nft_transfers", self._nft(emitter.chain)
        return self._other(emitter, sequence)

    def _other(self, emitter: Emitter, sequence: int) -> tuple[str, bytes]:
        """Return a message of a contract that is no bridge: an application's, or of no known one."""
        rng = self._rng
        if emitter.layout:
            return emitted(self._world, rng, emitter, sequence)
        formed = rng.random()
        if formed < _QUERIES:
            return "", query_response(rng)
        if formed < _QUERIES + _UNLISTED:
            return "application_transfers", ntt_transfer(self._world, rng, emitter.chain, sequence)
        # Other contracts' payloads may begin like a bridge's, and may be empty.
        start = rng.choice((b"\x01", b"\x03", b"\x00", b""))
        return "", start + rng.randbytes(rng.randrange(200)) if start else b""

    def _transfer(self, chain: int) -> bytes:
        """Return a transfer of a token of this chain, or of one that goes back to its own.

        Small amounts go back, or the bridges would hold less than nothing.
        """
        rng, world = self._rng, self._world
        target = rng.choice([other for other in CHAINS if other != chain])
        origin = chain if rng.random() < 0.7 else target
        token = self._token(origin)
        share = 1 if origin == chain else 100
        amount = int(10 ** (rng.random() * 6) * 10 ** min(token.decimals, 8)) // share
        if rng.random() < 0.002:
            amount = 2**256 - 1
        receiver = world.holder(target, int(world.addresses ** rng.random()) - 1)
        route = {
            "amount": amount,
            "origin_address": token.address,
            "origin_chain": token.chain,
            "target_address": receiver,
            "target_chain": target,
        }
        is_plain = rng.random() < 0.7
        self._sent = Sent(target, receiver, token.address if token.chain == target else None, is_plain)
        if is_plain:
            return encode_transfer(**route, fee=amount // 1000 if rng.random() < 0.1 else 0)  # type: ignore[arg-type]
        sender = world.holder(chain, int(world.addresses ** rng.random()) - 1)
        if rng.random() < _TO_APPLICATIONS:
            route["target_address"], told = received(world, rng, target, amount)
        else:
            told = rng.randbytes(rng.randrange(64))
        return encode_transfer_with_payload(**route, from_address=sender, app_payload=told)  # type: ignore[arg-type]

    def _token(self, chain: int) -> SyntheticToken:
        tokens = self._world.tokens[chain]
        return tokens[int(len(tokens) * self._rng.random() ** 2)]

    def _nft(self, chain: int) -> bytes:
        rng = self._rng
        target = rng.choice([other for other in CHAINS if other != chain])
        sent = encode_nft_transfer(
            origin_address=self._world.contract("collection", chain),
            origin_chain=chain,
            symbol=b"SYNFT",
            name="Synthetic Löwe".encode(),
            token_id=rng.getrandbits(rng.choice((8, 64, 256))),
            uri=b"synthetic://%d" % rng.randrange(10**6),
            target_address=self._world.holder(target, rng.randrange(self._world.addresses)),
            target_chain=target,
        )
        self._sent = Sent(target, b"", None, is_plain=False)
        return sent

    def _body(self, emitter: Emitter, sequence: int, time: int, payload: bytes) -> bytes:
        return encode_body(
            timestamp=time,
            nonce=self._rng.getrandbits(32),
            emitter_chain=emitter.chain,
            emitter_address=emitter.address,
            sequence=emitter.first + sequence,
            consistency_level=self._rng.choice((1, 15, 32)),
            payload=payload,
        )

    def _signers(self) -> list[int]:
        """Choose a quorum of guardians, sometimes more."""
        world, rng = self._world, self._rng
        count = rng.randint(world.quorum, world.guardians) if rng.random() < 0.1 else world.quorum
        return sorted(rng.sample(range(world.guardians), count))

    def _signed(self, body: bytes, signers: list[int]) -> Signatures:
        digested = body_digest(body)
        return [
            (g, guardian_key(self._world.seed, self._set, g).sign_recoverable(digested, hasher=None))
            for g in signers
        ]

    def _bad(self, emitter: Emitter, sequence: int, time: int, body: bytes) -> list[bytes]:
        """Make VAAs that end in quarantine, each for one reason."""
        reason = self._rng.choice(BAD)
        signed = self._signed(body, self._signers())
        if reason == "malformed":
            made = [self._malformed(signed, body)]
        elif reason == "unknown_guardian_set":
            made = [encode_vaa(_UNKNOWN_SET, signed, body)]
        elif reason == "duplicate_guardian":
            made = [encode_vaa(self._set, [signed[0], *signed], body)]
        elif reason == "bad_signature":
            made = [encode_vaa(self._set, self._spoilt(signed), body)]
        elif reason == "no_quorum":
            made = [encode_vaa(self._set, signed[: self._world.quorum - 1], body)]
        else:
            other = self._body(emitter, sequence, time, b"another payload")
            made = [encode_vaa(self._set, self._signed(one, self._signers()), one) for one in (body, other)]
        self.tally.quarantined[reason] = self.tally.quarantined.get(reason, 0) + len(made)
        return made

    def _malformed(self, signed: Signatures, body: bytes) -> bytes:
        way = self._rng.randrange(3)
        if way == 0:
            return encode_vaa(self._set, signed, body)[: 60 + self._rng.randrange(20)]
        if way == 1 or len(signed) < 2:
            return encode_vaa(self._set, signed, body, version=2)
        return encode_vaa(self._set, [signed[1], signed[0], *signed[2:]], body)

    def _spoilt(self, signed: Signatures) -> Signatures:
        """Replace a signature by one of another message, or add one of a guardian beyond the set."""
        foreign = self._signed(b"another message", [signed[-1][0]])
        if self._rng.random() < 0.5 and self._world.guardians < 255:
            return [*signed, (self._world.guardians, foreign[0][1])]
        return [*signed[:-1], *foreign]


def _attestation(token: SyntheticToken) -> bytes:
    return encode_asset_meta(
        token_address=token.address,
        token_chain=token.chain,
        decimals=token.decimals,
        symbol=token.symbol.encode(),
        name=token.name.encode(),
    )
