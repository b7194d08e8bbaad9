"""White-flag order: post-order depth-first search from a milestone's parents in listed order (TIP-2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def white_flag_order(
    roots: Iterable[int], first_edge: Sequence[int], edges: Sequence[int], member: bytearray
) -> list[int]:
    """Rows of a cone in white-flag order.

    ``edges[first_edge[row]:first_edge[row + 1]]`` are the parents of ``row`` in listed order; a negative one
    is not followed. Only rows with ``member[row] == 1`` belong to the cone; what is visited is set to 2.
    No recursion, so that the depth of a cone is no limit.
    """
    order: list[int] = []
    for root in roots:
        if root < 0 or member[root] != 1:
            continue
        member[root] = 2
        path, cursor = [root], [first_edge[root]]
        while path:
            row, at = path[-1], cursor[-1]
            end = first_edge[row + 1]
            while at < end:
                parent = edges[at]
                at += 1
                if parent >= 0 and member[parent] == 1:
                    member[parent] = 2
                    cursor[-1] = at
                    path.append(parent)
                    cursor.append(first_edge[parent])
                    break
            else:
                order.append(row)
                path.pop()
                cursor.pop()
    return order
