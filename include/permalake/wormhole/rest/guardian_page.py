"""The page of a guardian set: its members, the messages that it signed, and who signs.

No VAA has names: they are those of :attr:`~permalake.wormhole.reference.Reference.guardian_names`.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import numpy as np
from fastapi import Query, Request
from starlette.responses import Response

from permalake.contracts.figures import DailyChart
from permalake.lake.serving import Scan
from permalake.web.html import page
from permalake.web.page_router import page_router
from permalake.web.problems import ProblemError, bad_request
from permalake.web.state import PublishedLake, RequestLake
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.rest.dependencies import BundledReference
from permalake.wormhole.rest.flows import MovedPart
from permalake.wormhole.rest.part_pages import PartRange, part_chart

router = page_router()
_SITE = Path(__file__).parent / "site"
_SAMPLED = 5_000
"""VAAs whose signatures a page counts: the newest ones of a day."""
_MESSAGES = DailyChart(
    "Messages that it signed", "message_publication", (("messages", "CAST(count(*) AS BIGINT)"),)
)


@router.get("/guardian-set/{index}")
def guardian_set(
    request: Request,
    lake: PublishedLake,
    reference: BundledReference,
    index: str,
    query: Annotated[PartRange, Query()],
) -> Response:
    """Show a guardian set: members, quorum, messages by day, and the share of VAAs that each one signed."""
    if not index.isascii() or not index.isdigit() or len(index) > 10:
        raise bad_request(f"guardian set {index[:20]}: not a number")
    number = int(index)
    members = reference.guardian_sets.get(number)
    if members is None:
        numbers = ", ".join(str(set_number) for set_number in sorted(reference.guardian_sets))
        raise ProblemError(404, f"guardian set {number} is not in the reference data; it has {numbers}")
    first, last = query.of(lake.snapshot.days(lake.network, "messages_daily"))
    part = MovedPart("guardian_set_index = $set", {"set": number})
    chart = part_chart(lake, _MESSAGES, ("message_publication",), part, first, last)
    day = date.fromisoformat(chart["days"][-1]) if chart["days"] else None
    vaas, counts = _signed(lake, number, len(members), day) if day else (0, [0] * len(members))
    content = {
        "network": lake.network,
        "start": first.isoformat(),
        "end": last.isoformat(),
        "index": number,
        "sets": sorted(reference.guardian_sets),
        "quorum": len(members) * 2 // 3 + 1,
        "messages": sum(chart["series"]["messages"]),
        "charts": [chart] if chart["days"] else [],
        "sampled_day": day.isoformat() if day else None,
        "sampled": vaas,
        "guardians": [
            {
                "place": place,
                "name": reference.guardian_name(number, member),
                "address": f"0x{member.hex()}",
                "signed": count if vaas else None,
                "share": f"{100 * count / vaas:.1f} %" if vaas else None,
            }
            for place, (member, count) in enumerate(zip(members, counts, strict=True))
        ],
    }
    return page(request, lake.snapshot.publication, "guardian_set.html", content, _SITE)


def _signed(lake: RequestLake, index: int, members: int, day: date) -> tuple[int, list[int]]:
    """Return how many VAAs of a day were looked at, and how many of them each member signed."""

    def counted() -> tuple[int, list[int]]:
        scan = Scan(days=frozenset([day]))
        signed = lake.arrow(
            "SELECT signed_vaa FROM quorum_state q JOIN message_publication p "
            "ON p.date = q.date AND p.row_key = q.row_key "
            "WHERE p.date = $day AND p.guardian_set_index = $set "
            "ORDER BY p.timestamp DESC, p.row_key LIMIT $most",
            {"day": day, "set": index, "most": _SAMPLED},
            quorum_state=scan,
            message_publication=scan,
        )
        vaas = decode_vaas(signed.column("signed_vaa"))
        counts = np.bincount(vaas.guardian_index, minlength=members)
        return len(vaas), [int(count) for count in counts[:members]]

    return lake.once(f"signatures of guardian set {index} on {day}", counted)
