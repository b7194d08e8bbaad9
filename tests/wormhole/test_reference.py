from __future__ import annotations

import hashlib
import json
from datetime import date

import pytest
from sha3 import keccak_256

from permalake.errors import ConfigError
from permalake.wormhole.codec.applications.decode import ApplicationContract
from permalake.wormhole.codec.native_addresses import base58
from permalake.wormhole.codec.solana_accounts import derived_address, from_base58
from permalake.wormhole.reference import DOLLAR, FILES, load_reference
from support import places

SYNTHETIC = places.DATA / "synthetic" / "wormhole" / "reference"
TERRA_CLASSIC = 3
WETH = (2, "000000000000000000000000c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2")


def test_guardians_have_names_where_the_list_of_their_set_tells_them(tmp_path) -> None:
    bundled = load_reference()
    assert set(bundled.guardian_names) == set(bundled.guardian_sets)
    for index, members in bundled.guardian_sets.items():
        names = [bundled.guardian_name(index, member) for member in members]
        assert all(names)
        assert len(set(names)) == len(members)
    assert [bundled.guardian_name(index, bundled.guardian_sets[index][0]) for index in (0, 3, 4, 7)] == [
        *("Certus One", "Certus One", "RockawayX", "RockawayX")
    ]
    first = bundled.guardian_sets[4][0]
    assert bundled.guardian_name(3, first) is None, "not of this set"
    assert bundled.guardian_name(999, first) is None
    own = [{"index": 4, "guardians": [{"pubkey": f"0x{first.hex()}"}]}]
    (tmp_path / "guardian_sets.json").write_text(json.dumps(own))
    assert load_reference(tmp_path).guardian_name(4, first) is None, "a list of one's own tells no name"


def test_bundled_guardian_sets() -> None:
    sets = load_reference().guardian_sets
    assert sorted(sets) == list(range(8))
    assert [len(sets[index]) for index in sorted(sets)] == [1, 19, 19, 19, 19, 19, 19, 19]
    assert all(len(set(members)) == len(members) for members in sets.values())


def test_bundled_bridges_keep_removed_chains() -> None:
    bridges = load_reference().bridges
    assert (
        3,
        bytes.fromhex("0000000000000000000000007cf7b764e38a0a5e967972c1df77d432510564e2"),
    ) in bridges.token
    assert (
        1,
        bytes.fromhex("0def15a24423e1edd1a5ab16f557b9060303ddbab8c803d2ee48f4b78a1cfd6b"),
    ) in bridges.nft
    assert not bridges.token & bridges.nft
    assert {chain for chain, _ in bridges.token} <= set(load_reference().chains)


def test_bundled_tokens_are_identities_not_symbols() -> None:
    reference = load_reference()
    assert len(reference.tokens) > 1800
    weth = reference.tokens[WETH]
    assert (weth.symbol, weth.coingecko_id, weth.decimals) == ("WETH", "weth", 18)
    table = reference.token_table()
    assert table.num_rows == len(reference.tokens)
    assert table.schema.field("decimals").type == "int32"
    assert not reference.denied & set(reference.tokens)
    assert reference.denied_table().num_rows == len(reference.denied) > 0


def test_bundled_stand_ins_are_listed_and_none_stands_for_another() -> None:
    reference = load_reference()
    listed = {token.coingecko_id for token in reference.tokens.values()}
    assert set(reference.stand_in_assets) <= listed
    assets = {asset for asset, _ in reference.stand_in_assets.values()} - {DOLLAR}
    assert assets <= listed
    wrapping = {coin for coin, (asset, _) in reference.stand_in_assets.items() if asset != DOLLAR}
    assert not assets & wrapping
    assert reference.stand_in_assets["terra-usd"] == (DOLLAR, date(2022, 5, 9)), (
        "the day on which it lost its peg"
    )


def test_bundled_native_addresses_agree_with_identities() -> None:
    reference = load_reference()
    hashed = {"near": hashlib.sha256, "aptos": hashlib.sha3_256}
    seen = set()
    for (chain, address), token in reference.tokens.items():
        family, native = reference.chains[chain].family, token.native_address
        if not native:
            continue
        if family == "evm":
            assert native == "0x" + address[24:]
        elif family == "solana":
            assert base58(bytes.fromhex(address)) == native
        elif family in hashed:
            assert hashed[family](native.encode()).hexdigest() == address
        elif family == "cosmos" and chain != TERRA_CLASSIC:
            assert f"01{keccak_256(native.encode()).hexdigest()[2:]}" == address
        seen.add(family)
    assert {"evm", "solana", "near", "aptos", "algorand", "cosmos", "sui"} <= seen


def test_a_directory_is_added_to_the_bundled_data() -> None:
    bundled, both = load_reference(), load_reference(SYNTHETIC)
    assert set(both.guardian_sets) == {*range(8), 100, 101}
    assert both.bridges.token >= bundled.bridges.token
    assert set(both.tokens) > set(bundled.tokens)
    assert both.tokens[WETH].name == "Wrapped Ether"
    assert both.denied >= bundled.denied
    assert both.chains[3].family == "cosmos"
    assert both.chains[3].coingecko is None
    assert both.chains[2].core == "0x98f3c9e6e3face36baad05fe09d375ef1464288b"


def test_a_directory_may_hold_any_of_the_files(tmp_path) -> None:
    assert load_reference(tmp_path) == load_reference()
    members = [{"pubkey": "0x" + "ab" * 20}]
    (tmp_path / "guardian_sets.json").write_text(json.dumps([{"index": 4, "guardians": members}]))
    reference = load_reference(tmp_path)
    assert reference.guardian_sets[4] == (b"\xab" * 20,)
    assert reference.guardian_sets[3] == load_reference().guardian_sets[3]


def test_users_add_contracts_of_applications_and_rename_bundled_ones(tmp_path) -> None:
    bundled = load_reference().contracts()
    _, chain, address = next(key for key, one in bundled.items() if one.layout == "connect")
    entries = [
        {"app_id": "M_PORTAL", "layout": "ntt", "role": "emitter", "chain": 2, "address": "0x" + "77" * 32},
        {
            **{"app_id": "OURS", "layout": "recipient", "role": "recipient"},
            **{"chain": chain, "address": address.hex()},
        },
    ]
    (tmp_path / "applications.json").write_text(json.dumps(entries))
    both = load_reference(tmp_path).contracts()
    assert both["emitter", 2, b"\x77" * 32] == ApplicationContract("M_PORTAL", "ntt")
    assert both["recipient", chain, address] == ApplicationContract("OURS", "recipient")
    assert len(both) == len(bundled) + 1
    for wrong in ({"layout": "connect"}, {"role": "owner"}, {"address": "12"}):
        (tmp_path / "applications.json").write_text(json.dumps([entries[0] | wrong]))
        with pytest.raises(ConfigError, match=r"applications\.json is not readable"):
            load_reference(tmp_path)


def test_mayan_s_emitters_on_solana_are_its_programs_own() -> None:
    contracts = load_reference().contracts()
    programs = {
        "MAYAN_SWIFT": ("BLZRi6frs4X4DNLw56V4EXai1b6QVESN1BhHBTYM9VcY",),
        "MAYAN_MCTP": (
            "dkpZqrxHFrhziEMQ931GLtfy11nFkCsfMftH9u6QwBU",
            "Awm2zSgzMGTRraAVjRvshqLehy7mJ2Qr3maURDsoDmwi",
        ),
    }
    for app_id, own in programs.items():
        for program in own:
            emitter = from_base58(derived_address(program, b"emitter"))
            assert contracts["emitter", 1, emitter].app_id == app_id


def test_a_changed_file_is_read_anew(tmp_path) -> None:
    file = tmp_path / "deny.json"
    file.write_text("[]")
    assert load_reference(tmp_path).denied == load_reference().denied
    assert load_reference(tmp_path) is load_reference(str(tmp_path))
    file.write_text(json.dumps([{"chain": 2, "token_address": "ab" * 32}]))
    assert (2, "ab" * 32) in load_reference(tmp_path).denied


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("guardian_sets.json", "{"),
        ("guardian_sets.json", '[{"index": 1}]'),
        ("guardian_sets.json", '[{"index": 1, "guardians": [{"pubkey": "0x00"}]}]'),
        ("bridges.json", "[]"),
        ("bridges.json", '{"nftbridge_emitters": [{"chain": 1, "emitter": "zz"}]}'),
        ("token_list.csv", "chain,token_address\n2,beef\n"),
        ("token_list.csv", "chain,token_address,decimals\n2," + "00" * 32 + ",many\n"),
        ("token_list.csv", "symbol\nWETH\n"),
        ("deny.json", '[{"chain": "x", "token_address": ""}]'),
        ("chains.json", "[]"),
    ],
)
def test_a_broken_file_is_an_error_on_one_line(tmp_path, name, text) -> None:
    assert name in FILES
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as error:
        load_reference(tmp_path)
    assert str(tmp_path / name) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_directory_is_an_error(tmp_path) -> None:
    with pytest.raises(ConfigError, match="no directory"):
        load_reference(tmp_path / "nowhere")
