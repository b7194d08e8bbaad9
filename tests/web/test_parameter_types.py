"""Ids are taken with or without 0x, in any case; anything else is a 400 that names the parameter."""

from __future__ import annotations

import pytest

from permalake.web import parameter_types
from permalake.web.problems import ProblemError

ID = "ab" * 32


@pytest.mark.parametrize("text", [ID, f"0x{ID}", ID.upper(), f"0X{ID.upper()}"])
def test_an_id_is_answered_in_one_form(text) -> None:
    assert parameter_types.hex_id(text, "blockId") == ID


@pytest.mark.parametrize("text", ["", "0x", ID[:-1], f"{ID}00", "zz" * 32, f"{ID[:-1]}\n", "ａ" * 64])
def test_a_wrong_id_is_a_bad_request(text) -> None:
    with pytest.raises(ProblemError, match="blockId") as refused:
        parameter_types.hex_id(text, "blockId")
    assert refused.value.status == 400


def test_a_tag_has_one_to_sixty_four_bytes() -> None:
    assert parameter_types.tag_hex("IOTA", "index", utf8=True) == "494f5441"
    for text in ("", "00" * 65):
        with pytest.raises(ProblemError):
            parameter_types.tag_hex(text, "index")
