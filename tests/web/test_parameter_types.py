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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("1000", 1000), ("0.5", 0.5), ("1,000", 1000), ("12,345,678.25", 12345678.25)),
        *(("-1,000", -1000), ("1e3", 1000)),
    ],
)
def test_commas_set_off_groups_of_three_digits(text, number) -> None:
    assert parameter_types.decimal_number(text, "minimum") == number


@pytest.mark.parametrize(
    "text", ["0,5", "0,500", "1,00", "1000,5", "1,0000", "1.5,000", "1,000,", ",5", "1,000e3", "much"]
)
def test_a_comma_before_a_fraction_is_a_bad_request(text) -> None:
    with pytest.raises(ProblemError, match=f"minimum: {text} is no number") as refused:
        parameter_types.decimal_number(text, "minimum")
    assert refused.value.status == 400
