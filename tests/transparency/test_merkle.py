"""Trees as RFC 6962 has them."""

from __future__ import annotations

import pytest

from permalake.transparency.merkle import EMPTY, inclusion_proof, leaf_hash, root, root_of_inclusion

# Leaves and roots of the tests of Certificate Transparency's reference implementation
# (github.com/google/certificate-transparency, merkletree/merkle_tree_test.cc).
LEAVES = ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
HASHES = [leaf_hash(bytes.fromhex(leaf)) for leaf in LEAVES]


def test_roots_are_those_of_the_reference_implementation() -> None:
    assert EMPTY.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert [root(HASHES[:size]).hex() for size in range(1, 9)] == list(ROOTS)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_a_path_leads_from_its_leaf_to_the_root_and_from_no_other(size) -> None:
    hashes = [leaf_hash(bytes([at])) for at in range(size)]
    for index in range(size):
        path = inclusion_proof(hashes, index)
        for other in range(size):
            led = root_of_inclusion(hashes[other], index, size, path)
            assert (led == root(hashes)) == (other == index)
        assert root_of_inclusion(hashes[index], index, size, [*path, hashes[0]]) != root(hashes)
        assert root_of_inclusion(hashes[index], size, size, path) is None


def test_there_is_no_path_of_a_leaf_that_is_not_there() -> None:
    with pytest.raises(IndexError):
        inclusion_proof(HASHES, 8)
