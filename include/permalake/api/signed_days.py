"""The Verify page: what is signed of a network's day, what that proves, and how to check it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from permalake.api.pages import SITE
from permalake.api.proofs import log_copy
from permalake.config import Settings
from permalake.transparency.copies import read_manifest
from permalake.transparency.documents import Evidence, SignedTable
from permalake.transparency.log import Entry
from permalake.transparency.report import NOT_COVERED, basis
from permalake.transparency.served import ServedLog, served_log
from permalake.web.html import page
from permalake.web.page_router import page_router
from permalake.web.paging import PageOptions
from permalake.web.parameter_types import FormDate, FormNetwork
from permalake.web.problems import documented, not_found
from permalake.web.published import published_state

Json = dict[str, Any]
router = page_router()
_LISTED = 60


class VerifyOptions(PageOptions):
    """Parameters of the page."""

    network: FormNetwork = None
    day: FormDate = None


@router.get("/verify", responses=documented())
def verify(request: Request, query: Annotated[VerifyOptions, Query()]) -> Response:
    """Show a day's manifest, its place in the log, and what they prove; the newest day without a date."""
    settings: Settings = request.app.state.settings
    served = published_state(request).networks()
    signed = served_log(settings.lake.warehouse)
    days = signed.days if signed else {}
    networks = sorted(served | days.keys())
    if query.network and query.network not in networks:
        raise not_found(f"network {query.network}")
    network = query.network or next(iter(sorted(days)), networks[0] if networks else None)
    content: Json = {"network": network, "known": networks, "day": None, "end": "", "log": None}
    if query.day:
        content |= {"day": query.day.isoformat(), "end": query.day.isoformat()}
    if signed:
        content["log"] = _log(signed)
        if entry := _chosen(days.get(network or "", []), query.day):
            content |= _day(settings, signed, entry, days[entry.network])
    return page(request, None, "verify.html", content, SITE)


def _chosen(entries: Sequence[Entry], day: date | None) -> Entry | None:
    """Return the entry of a day, or the newest one; None where that day is not signed."""
    if day is None:
        return entries[-1] if entries else None
    return next((entry for entry in entries if entry.date == day.isoformat()), None)


def _log(signed: ServedLog) -> Json:
    checkpoint = signed.log.checkpoint
    return {
        "origin": checkpoint.origin,
        "key": str(signed.key),
        "entries": checkpoint.size,
        "root": checkpoint.root.hex(),
        "checkpoint": signed.log.note.decode(),
    }


def _day(settings: Settings, signed: ServedLog, entry: Entry, entries: Sequence[Entry]) -> Json:
    manifest = read_manifest(log_copy(settings), entry)
    at = entries.index(entry)
    return {
        "day": entry.date,
        "end": entry.date,
        "previous": entries[at - 1].date if at else None,
        "next": entries[at + 1].date if at + 1 < len(entries) else None,
        "signed_days": len(entries),
        "newest": [entry.date for entry in reversed(entries[-_LISTED:])],
        "place": signed.places[entry] + 1,
        "manifest": {
            name: manifest[name]
            for name in ("publication", "published_at", "software", "replaces", "lake", "verified")
        },
        "digest": entry.manifest,
        "tables": list(_tables(manifest["tables"])),
        "raw": manifest["raw"],
        "rules": list(manifest["verified"].get("rules", ())),
        "facts": list(_facts(manifest["verified"])),
        "quarantined": [
            {"reason": reason, "inputs": count} for reason, count in manifest["quarantine"].items()
        ],
        "gaps": [str(gap) for gap in manifest["gaps"]],
        "notes": [str(note) for note in manifest["notes"]],
        "rests_on": [
            f"whoever holds the key {signed.key}: compare it with the publisher's own word.",
            *basis(manifest["verified"]),
        ],
        "not_covered": list(NOT_COVERED),
        "options": f"--network {entry.network} --date {entry.date}",
    }


def _tables(tables: Mapping[str, SignedTable]) -> Iterator[Json]:
    for name, said in sorted(tables.items()):
        yield {"table": name, "kind": said["kind"], "rows": said["rows"], "digest": said["digest"]}


def _facts(evidence: Evidence) -> Iterator[list[str]]:
    """Yield what else the manifest says of how the input was verified, as names and values."""
    if (milestones := evidence.get("milestones")) and milestones["count"]:
        yield ["Milestones", "{first} to {last}, {count} in all".format(**milestones)]
    if coordinator := evidence.get("coordinator"):
        for key in coordinator["keys"]:
            until = f" to {key['end']}" if key.get("end") else ""
            yield ["Coordinator's key", f"{key['key']} for milestones from {key['start']}{until}"]
    for index, signed in evidence.get("guardian_sets", {}).items():
        signers = f"{signed['quorum']} of {len(signed['guardians'])} guardians must sign"
        yield [f"Guardian set {index}", f"{signed['messages']:,} messages; {signers}"]
