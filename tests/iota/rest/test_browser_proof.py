"""The scripts of a message's page in Node: BLAKE2b, and proofs before and after any change of them."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from permalake.iota.rest import explorer_pages
from support.iota_days import expected

SITE = Path(explorer_pages.__file__).parent / "site"
NODE = Path(sys.executable).parent / "node"
PROTOCOLS = {"shimmer": "stardust", "iota": "chrysalis"}


def node(script, given):
    """What a script writes as JSON, with ``given`` in ``input``."""
    lines = f"const input = JSON.parse((await import('node:fs')).readFileSync(0, 'utf8'));\n{script}"
    done = subprocess.run(
        [NODE, "--input-type=module", "--eval", lines],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def hashes(pairs):
    script = f"""
    const {{ blake2b }} = await import({json.dumps((SITE / "blake2b.js").as_uri())});
    const found = input.map(([data, size]) => blake2b(Buffer.from(data, "hex"), size));
    console.log(JSON.stringify(found.map((hash) => Buffer.from(hash).toString("hex"))));
    """
    return node(script, pairs)


def verdicts(proofs):
    script = f"""
    const {{ verify }} = await import({json.dumps((SITE / "proof.js").as_uri())});
    console.log(JSON.stringify(await Promise.all(input.map(verify))));
    """
    return node(script, proofs)


def test_blake2b_gives_what_rfc_7693_states() -> None:
    # Appendix A: BLAKE2b-512 of "abc".
    expected_hash = (
        "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
        "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
    )
    assert hashes([[b"abc".hex(), 64]]) == [expected_hash]


def rfc_sequence(length, seed):
    """Appendix E of RFC 7693: a deterministic sequence of bytes."""
    a, b, out = (0xDEAD4BAD * seed) & 0xFFFFFFFF, 1, bytearray()
    for _ in range(length):
        a, b = b, (a + b) & 0xFFFFFFFF
        out.append(b >> 24)
    return bytes(out)


def test_blake2b_agrees_with_another_implementation() -> None:
    # Lengths and sizes of the RFC's self-test, and the lengths around a block.
    lengths = (0, 1, 3, 127, 128, 129, 255, 256, 257, 1024, 32_768)
    pairs = [(rfc_sequence(length, length), size) for length in lengths for size in (20, 32, 48, 64)]
    found = hashes([[data.hex(), size] for data, size in pairs])
    assert found == [hashlib.blake2b(data, digest_size=size).hexdigest() for data, size in pairs]


@pytest.fixture(scope="module", params=PROTOCOLS)
def proofs(request, synthetic_api):
    """Proofs of messages of every state, from all milestones."""
    rows = expected(PROTOCOLS[request.param], "messages")
    random.Random(7).shuffle(rows)
    found = []
    for state in (0, 1, 2):
        own = [row for row in rows if row["inclusion_state"] == state][:6]
        answers = [
            synthetic_api.get(f"/{request.param}/explore/message/{row['message_id']}/proof") for row in own
        ]
        # A milestone's own message of the last milestone has no later one that proves it.
        found += [answer.json() for answer in answers if answer.status_code == 200]
    assert len(found) > 12
    return found


def test_every_proof_holds_and_says_why(proofs) -> None:
    found = verdicts(proofs)
    assert [one["valid"] for one in found] == [True] * len(proofs)
    for proof, one in zip(proofs, found, strict=True):
        assert all(step["holds"] is True for step in one["steps"])
        told = " ".join(step["text"] for step in one["steps"])
        assert "RFC 7693" in told
        assert proof["id"] in told
        assert (
            f"{len(proof['milestone']['signatures'])} of {len(proof['milestone']['signatures'])} signatures"
            in told
        )
        assert "trusts as the coordinator's" in told


def hex_places(value, path=()):
    """Every place in a proof that holds hex."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from hex_places(one, (*path, name))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from hex_places(one, (*path, at))
    elif isinstance(value, str) and len(value) >= 64:
        yield path


def changed(proof, path, at):
    """The proof with another digit at one place."""
    other = copy.deepcopy(proof)
    inner = other
    for step in path[:-1]:
        inner = inner[step]
    text = inner[path[-1]]
    at %= len(text)
    inner[path[-1]] = text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :]
    return other


def test_any_changed_digit_breaks_a_proof(proofs) -> None:
    chosen = random.Random(3)
    tampered = []
    for proof in proofs:
        for path in hex_places(proof):
            if path[0] != "trusted":
                tampered.append(changed(proof, path, chosen.randrange(10**6)))
    assert len(tampered) > 60
    found = verdicts(tampered)
    assert [one["valid"] for one in found] == [False] * len(tampered)
    assert all(one["steps"][-1]["holds"] is False for one in found)


def test_other_keys_or_too_few_break_a_proof(proofs) -> None:
    proof = proofs[0]
    index = proof["milestone"]["index"]
    strangers = proof | {"trusted": {"keys": ["00" * 32], "threshold": 1}}
    more = proof | {"trusted": {**proof["trusted"], "threshold": 99}}
    twice = copy.deepcopy(proof)
    twice["milestone"]["signatures"] = [twice["milestone"]["signatures"][0]] * 5
    other = proof | {"milestone": proof["milestone"] | {"index": index + 1}}
    assert [one["valid"] for one in verdicts([strangers, more, twice, other])] == [False] * 4


def test_without_configured_keys_the_milestones_own_are_named(proofs) -> None:
    [found] = verdicts([proofs[0] | {"trusted": {"keys": [], "threshold": 1}}])
    assert found["valid"] is True
    assert "the milestone's own keys" in found["steps"][-1]["text"]


@pytest.mark.parametrize(
    "broken", [{}, {"message": "zz"}, {"milestone": {}}, {"tree": {"l": None}, "path": None}]
)
def test_what_is_no_proof_does_not_hold(proofs, broken) -> None:
    [found] = verdicts([{**proofs[0], **broken} if broken else {}])
    assert found["valid"] is False
    assert found["steps"][-1]["holds"] is False
