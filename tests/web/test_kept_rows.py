"""What is kept of what was asked for."""

from __future__ import annotations

from permalake.web.kept_rows import kept_rows


class Asked:
    """Asks for results of so many rows, and notes which were read."""

    def __init__(self, most: int) -> None:
        self._kept = kept_rows(most)

    def __call__(self, *keys: tuple[str, int]) -> list[str]:
        read: list[str] = []
        for name, count in keys:
            rows = [{"name": name}] * count
            assert self._kept(name, lambda name=name, rows=rows: read.append(name) or rows) == rows
        return read


def test_rows_are_read_once_and_the_least_recently_used_go_first() -> None:
    asked = Asked(20)
    assert asked(("a", 9), ("b", 9), ("a", 9), ("b", 9), ("a", 9)) == ["a", "b"]
    assert asked(("c", 3), ("a", 9), ("c", 3)) == ["c"]
    assert asked(("b", 9)) == ["b"]


def test_many_results_keep_no_more_rows_than_a_few() -> None:
    asked = Asked(1000)
    assert len(asked(*((f"{day}", 99) for day in range(512)))) == 512
    assert asked(*((f"{day}", 99) for day in range(502, 512))) == []
    assert asked(("501", 99)) == ["501"]


def test_a_result_that_is_too_large_drives_none_out() -> None:
    asked = Asked(20)
    assert asked(("small", 5), ("large", 20), ("large", 20), ("small", 5)) == ["small", "large", "large"]


def test_empty_results_take_room_too() -> None:
    asked = Asked(20)
    assert len(asked(*((f"{number}", 0) for number in range(21)))) == 21
    assert asked(("0", 0)) == ["0"]
