"""The synthetic days of the bundled sample cannot be taken for real ones."""

from __future__ import annotations

import base64
import csv
import gzip
import json
from datetime import UTC, datetime

import pyarrow as pa

from permalake.config import load_settings
from permalake.local.demo import SYNTHETIC
from permalake.paths import ROOT, SAMPLE
from permalake.wormhole.codec.guardians import verify
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.reference import load_reference

OWN = SAMPLE / "synthetic_reference"


def test_only_their_own_guardian_sets_sign_and_only_in_their_year() -> None:
    files = sorted((SAMPLE / "wormhole" / "synthetic").glob("*.jsonl"))
    assert [file.stem for file in files] == [f"synthetic-{day}" for day in SYNTHETIC]
    raw = [base64.b64decode(json.loads(line)["vaa"]) for file in files for line in file.open()]
    vaas = decode_vaas(pa.array(raw, pa.binary()))
    verified = verify(vaas, load_reference(OWN).guardian_sets).ok()
    assert verified.sum() > 230
    assert not verify(vaas, load_reference().guardian_sets).ok().any()
    assert set(vaas.guardian_set_index[verified].tolist()) == {1000, 1001}
    # Governance carries no time of its own.
    times = vaas.timestamp[verified & (vaas.timestamp > 1)].tolist()
    assert {datetime.fromtimestamp(time, UTC).date() for time in times} == set(SYNTHETIC)


def test_their_tokens_bridges_and_guardians_are_nobody_else_s() -> None:
    real, both = load_reference(), load_reference(OWN)
    assert {1000, 1001} == both.guardian_sets.keys() - real.guardian_sets.keys()
    guardians = {one for index in (1000, 1001) for one in both.guardian_sets[index]}
    assert not guardians & {one for members in real.guardian_sets.values() for one in members}
    own = json.loads((OWN / "bridges.json").read_text())
    emitters = {(one["chain"], bytes.fromhex(one["emitter"])) for listed in own.values() for one in listed}
    assert emitters
    assert not emitters & (real.bridges.token | real.bridges.nft)
    tokens = [token for key, token in both.tokens.items() if key not in real.tokens]
    assert tokens
    assert all(token.symbol.startswith("SYN") and token.name.startswith("Synthetic ") for token in tokens)
    assert all(both.tokens[key] == token for key, token in real.tokens.items())


def test_the_bundled_configuration_reads_them_and_their_prices_are_theirs_alone() -> None:
    settings = load_settings(ROOT / "permalake.toml")
    assert settings.wormhole.reference == OWN
    assert settings.prices.path == SAMPLE / "prices"
    with gzip.open(SAMPLE / "prices" / "synthetic_prices.csv.gz", "rt") as lines:
        quotes = list(csv.DictReader(lines))
    assert all(quote["symbol"].startswith("SYN") for quote in quotes)
    real = load_reference().tokens
    assert not {(int(quote["chain"]), quote["token_address"]) for quote in quotes} & real.keys()
