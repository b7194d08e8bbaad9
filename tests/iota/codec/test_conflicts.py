"""Conflict reasons: every rule of a transaction broken once, and whole batches of synthetic transactions."""

import gzip
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from permalake.iota.codec import conflict_rules
from permalake.iota.codec.blocks import decode_blocks
from permalake.iota.codec.chain_rules import Case, first_broken
from permalake.iota.codec.conflict_rules import Spending, judge, touches_dust
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.encode import ReferenceUnlock, SignatureUnlock, Transaction
from permalake.iota.codec.encode_outputs import Address, NativeToken, Output
from permalake.iota.codec.outputs import ALIAS, BASIC, FOUNDRY, NFT
from permalake.iota.codec.reasons import Conflict
from support import places

SYNTHETIC = places.DATA / "synthetic"
ALICE, BOB, CAROL = (Address(0, bytes([n]) * 32) for n in (1, 2, 3))
ALIAS_ID, NFT_ID = b"\xa1" * 32, b"\xb2" * 32
BY_ALIAS, BY_NFT = Address(8, ALIAS_ID), Address(16, NFT_ID)
TRANSACTION_ID = b"\xcc" * 32
TIME = 1_000
SIGNED = SignatureUnlock(bytes(32), bytes(64))


def basic(amount=10, address=ALICE, **more):
    return Output(BASIC, amount, address, **more)


def alias(index=4, counter=0, **more):
    base = {"chain_id": ALIAS_ID, "state_controller": ALICE, "governor": BOB, "state_index": index}
    return Output(ALIAS, 50, foundry_counter=counter, **(base | more))


def nft(**more):
    return Output(NFT, 20, **({"chain_id": NFT_ID, "address": ALICE} | more))


def foundry(serial=1, minted=0, melted=0, maximum=1000, **more):
    supply = {"minted": minted, "melted": melted, "maximum": maximum}
    return Output(FOUNDRY, 5, BY_ALIAS, serial_number=serial, **supply, **more)


def token(amount, serial=1):
    return (NativeToken(BY_ALIAS.pack() + serial.to_bytes(4, "little") + b"\0", amount),)


def reason(spent, outputs, unlocks=(SIGNED,), *, time=TIME, commits=True, signers=(ALICE, BOB, CAROL)):
    """The reason of a transaction whose signatures are those of the owners, as far as they are signers."""
    ids = [bytes([n]) * 34 for n in range(len(spent))]
    inputs = tuple((one[:32], 0) for one in ids)
    case = Case(
        transaction=Transaction(inputs, tuple(outputs), tuple(unlocks)),
        transaction_id=TRANSACTION_ID,
        spent=list(spent),
        spent_ids=ids,
        time=time,
        commits=commits,
        signed=lambda _, owner: owner in {signer.value for signer in signers},
    )
    return first_broken(case)


def refer(index, kind=1):
    return ReferenceUnlock(kind, index)


TWICE = (basic(), basic())
GOVERNED = {"signers": (BOB,)}
VALID = {
    "plain": ([basic()], [basic(address=BOB)]),
    "reference": (TWICE, [basic(20)], (SIGNED, refer(0))),
    "timelock just over": ([basic(timelock=TIME)], [basic()]),
    "expired": ([basic(expiration=(BOB, TIME))], [basic()], (SIGNED,), GOVERNED),
    "not yet expired": ([basic(expiration=(BOB, TIME + 1))], [basic()], (SIGNED,), {"signers": (ALICE,)}),
    "sender": ([basic()], [basic(sender=ALICE)]),
    "storage return": ([basic(storage_return=(BOB, 4))], [basic(4, BOB), basic(6)]),
    "storage return of one's own": (
        [basic(storage_return=(BOB, 4), expiration=(BOB, TIME))],
        [basic(10, CAROL)],
        (SIGNED,),
        GOVERNED,
    ),
    "alias state": ([alias()], [alias(5, state_metadata=b"x", sender=BY_ALIAS)]),
    "alias governance": ([alias()], [alias(governor=CAROL, metadata=b"x")], (SIGNED,), GOVERNED),
    "alias end": ([alias()], [basic(50)], (SIGNED,), GOVERNED),
    "alias unlocks": ([alias(), basic(address=BY_ALIAS)], [alias(5), basic()], (SIGNED, refer(0, 2))),
    "nft unlocks": ([nft(), basic(address=BY_NFT)], [nft(address=BOB), basic()], (SIGNED, refer(0, 3))),
    "new nft": ([basic(20)], [nft(chain_id=bytes(32), issuer=ALICE)]),
    "new alias": ([basic(50)], [alias(0, chain_id=bytes(32))]),
    "new foundry": (
        [alias(), basic(5)],
        [alias(5, 1), foundry(minted=7), basic(0, native_tokens=token(7))],
        (SIGNED, refer(0)),
    ),
    "mint": (
        [alias(4, 1), foundry(minted=7)],
        [alias(5, 1), foundry(minted=9, native_tokens=token(2))],
        (SIGNED, refer(0, 2)),
    ),
    "melt and burn": (
        [alias(4, 1), foundry(minted=7, native_tokens=token(7))],
        [alias(5, 1), foundry(minted=7, melted=3, native_tokens=token(2))],
        (SIGNED, refer(0, 2)),
    ),
    "foundry end": (
        [alias(4, 1), foundry(minted=7, melted=5, native_tokens=token(2))],
        [alias(5, 1), basic(5)],
        (SIGNED, refer(0, 2)),
    ),
    "burn": ([basic(native_tokens=token(5))], [basic(native_tokens=token(2))]),
}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_transaction_breaks_no_rule(name) -> None:
    spent, outputs, *more = VALID[name]
    unlocks = more[0] if more else (SIGNED,)
    assert reason(spent, outputs, unlocks, **(more[1] if len(more) > 1 else {})) == Conflict.NONE


STATE, MINT = VALID["alias state"], VALID["mint"]
BROKEN = [
    (Conflict.DUST_OR_TIMELOCK, [basic(timelock=TIME + 1)], [basic()]),
    (Conflict.INPUTS_COMMITMENT, [basic()], [basic(99)], (SIGNED,), {"commits": False}),
    (Conflict.SIGNATURE, [basic()], [basic(99)], (SIGNED,), {"signers": ()}),
    (Conflict.INPUT_UNLOCK, TWICE, [basic(20)], (SIGNED, SIGNED)),
    (Conflict.INPUT_UNLOCK, [basic(), basic(address=BOB)], [basic(20)], (SIGNED, refer(0))),
    (Conflict.INPUT_UNLOCK, TWICE, [basic(20)], (SIGNED, refer(0, 2))),
    (Conflict.INPUT_UNLOCK, [basic(address=BY_NFT)], [basic()]),
    (Conflict.INPUT_UNLOCK, [nft(), basic(address=BY_NFT)], [nft(), basic()], (SIGNED, refer(0, 2))),
    # A governance transition does not unlock the alias's address.
    (Conflict.INPUT_UNLOCK, [alias(), basic(address=BY_ALIAS)], [alias(), basic()], (SIGNED, refer(0, 2))),
    (Conflict.CHAIN_TRANSITION, [alias()], [alias(6)]),
    (Conflict.SENDER, [basic()], [basic(sender=BOB)]),
    (Conflict.SENDER, [alias()], [alias(sender=BY_ALIAS)], (SIGNED,), GOVERNED),
    (Conflict.SUM, [basic()], [basic(9)]),
    (Conflict.STORAGE_RETURN, [basic(storage_return=(BOB, 4))], [basic(3, BOB), basic(7)]),
    (Conflict.STORAGE_RETURN, [basic(storage_return=(BOB, 4))], [basic(4, BOB, tag=b"x"), basic(6)]),
    (Conflict.NATIVE_TOKENS, [basic()], [basic(native_tokens=token(1))]),
    (Conflict.NATIVE_TOKENS, [basic(native_tokens=token(1))], [basic(native_tokens=token(2))]),
    (
        Conflict.NATIVE_TOKENS,
        [basic(native_tokens=tuple(token(1, n)[0] for n in range(65)))],
        [basic()],
    ),
    (
        Conflict.NATIVE_TOKENS,
        [basic(native_tokens=token(2**256 - 1)), basic(native_tokens=token(1))],
        [basic(20)],
        (SIGNED, refer(0)),
    ),
    *(
        (Conflict.CHAIN_TRANSITION, STATE[0], [replace(STATE[1][0], **changed)])
        for changed in (
            {"state_controller": CAROL},
            {"governor": CAROL},
            {"metadata": b"y"},
            {"immutable_metadata": b"y"},
            {"issuer": ALICE},
            {"foundry_counter": 1},
        )
    ),
    *(
        (Conflict.CHAIN_TRANSITION, [alias()], outputs, (SIGNED,), GOVERNED)
        for outputs in (
            [alias(state_metadata=b"x")],
            [alias(counter=1)],
            [replace(alias(), amount=40), basic(10)],
        )
    ),
    (Conflict.CHAIN_TRANSITION, [alias(4, 2)], [alias(5, 1)]),
    (Conflict.CHAIN_TRANSITION, [basic(50)], [alias(0)]),
    (Conflict.CHAIN_TRANSITION, [basic(20)], [nft()]),
    (Conflict.CHAIN_TRANSITION, [basic(20)], [nft(chain_id=bytes(32), issuer=BOB)]),
    (Conflict.CHAIN_TRANSITION, [nft()], [nft(immutable_metadata=b"y")]),
    (Conflict.CHAIN_TRANSITION, [basic(5)], [foundry()]),
    *(
        (Conflict.CHAIN_TRANSITION, [alias(), basic(5)], [alias(5, 1), new], (SIGNED, refer(0)))
        for new in (foundry(2), foundry(minted=1), foundry(melted=1))
    ),
    (
        Conflict.CHAIN_TRANSITION,
        [alias(), basic(10)],
        [alias(5, 2), foundry(2), foundry(1)],
        (SIGNED, refer(0)),
    ),
    *(
        (Conflict.CHAIN_TRANSITION, MINT[0], [MINT[1][0], replace(MINT[1][1], **changed)], MINT[2])
        for changed in (
            {"minted": 8},
            {"minted": 6},
            {"maximum": 999},
            {"melted": 1},
            {"native_tokens": ()},
            {"immutable_metadata": b"y"},
        )
    ),
    (
        Conflict.CHAIN_TRANSITION,
        [alias(4, 1), foundry(minted=7, native_tokens=token(7))],
        [alias(5, 1), foundry(minted=7, melted=6, native_tokens=token(2))],
        (SIGNED, refer(0, 2)),
    ),
    (
        Conflict.CHAIN_TRANSITION,
        [alias(4, 1), foundry(minted=7, melted=4, native_tokens=token(3))],
        [alias(5, 1), basic(5, native_tokens=token(1))],
        (SIGNED, refer(0, 2)),
    ),
]


@pytest.mark.parametrize("at", range(len(BROKEN)))
def test_each_rule_broken_has_its_reason(at) -> None:
    expected, spent, outputs, *more = BROKEN[at]
    unlocks = more[0] if more else (SIGNED,)
    assert reason(spent, outputs, unlocks, **(more[1] if len(more) > 1 else {})) == expected


def lines(protocol, name):
    folder = SYNTHETIC / protocol / "archive"
    return [json.loads(line) for line in gzip.open(folder / f"{name}.jsonl.gz", "rt")]


def unhex(text):
    return bytes.fromhex(text.removeprefix("0x"))


class Archive:
    """Transactions of a synthetic archive whose inputs it tells of, and what its source says of them."""

    def __init__(self, protocol):
        told = lines(protocol, "blocks" if protocol == "stardust" else "messages")
        times = {row["index"]: row["timestamp"] for row in lines(protocol, "milestones")}
        self.blocks = decode_blocks(pa.array([unhex(row["raw"]) for row in told]), protocol)
        transactions = self.blocks.transactions
        raw = {unhex(row["outputId"]): unhex(row["rawOutput"]) for row in lines(protocol, "consumed_outputs")}
        parts = transactions.outputs
        for owner, idx, start, length in zip(
            parts.transaction, parts.idx, parts.start, parts.length, strict=True
        ):
            output_id = transactions.transaction_id[owner].tobytes() + int(idx).to_bytes(2, "little")
            raw.setdefault(output_id, self.blocks.data[start : start + length].tobytes())
        row = {output_id: at for at, output_id in enumerate(raw)}
        inputs = [one.tobytes() for one in transactions.inputs.output_id]
        self.consumed = np.array([row.get(one, -1) for one in inputs])
        unknown = transactions.inputs.transaction[self.consumed < 0]
        self.rows = np.setdiff1d(np.arange(len(transactions)), unknown)
        of = [told[block] for block in transactions.block]
        self.reason = np.array([one["metadata"].get("conflictReason") or 0 for one in of])
        self.spending = Spending(
            protocol=protocol,
            blocks=self.blocks,
            rows=self.rows,
            outputs=decode_outputs(pa.array(list(raw.values())), protocol),
            output_id=np.frombuffer(b"".join(raw), np.uint8).reshape(-1, 34),
            consumed=self.consumed,
            time=np.array([times[one["milestone"]] for one in of]),
        )
        if protocol == "chrysalis":
            left_out = touches_dust(self.spending) & (self.reason > 0)
            self.spending.dust = np.where(left_out, -1, 0)


@pytest.fixture(scope="module", params=["stardust", "chrysalis"])
def archive(request):
    return Archive(request.param)


def test_a_batch_is_judged_as_its_source_says(archive) -> None:
    """What is only known from history (1 to 3) breaks no rule here."""
    told = archive.reason[archive.rows]
    assert judge(archive.spending).tolist() == np.where(told <= 3, 0, told).tolist()
    assert len(Counter(told.tolist())) >= 5


def test_batches_and_single_transactions_are_judged_alike(monkeypatch) -> None:
    archive = Archive("stardust")
    whole = judge(archive.spending)
    everything = np.ones(len(archive.blocks.transactions), bool)
    monkeypatch.setattr(conflict_rules, "_is_special", lambda *_: everything)
    assert judge(archive.spending).tolist() == whole.tolist()


def test_without_signatures_none_is_looked_at(archive) -> None:
    archive.spending.signatures = False
    code = judge(archive.spending)
    archive.spending.signatures = True
    assert Conflict.SIGNATURE not in code
    assert np.count_nonzero(code) > 0


def test_a_chrysalis_address_is_unlocked_by_one_signature() -> None:
    """The same address behind two signatures is valid by no rule (iota.go v2)."""
    archive = Archive("chrysalis")
    unlocks, inputs = archive.blocks.transactions.unlocks, archive.blocks.transactions.inputs
    plain = [row for row in np.flatnonzero(unlocks.kind == 1) if inputs.transaction[row] in archive.rows]
    transaction = inputs.transaction[plain[0]]
    assert archive.reason[transaction] == 0
    unlocks.kind[plain[0]] = 0
    code = judge(archive.spending)[np.searchsorted(archive.rows, transaction)]
    assert code == Conflict.SEMANTICS
