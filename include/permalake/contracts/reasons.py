"""The meaning of every code of a reason, and the remedy; the runbook is generated from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from permalake.contracts.reason_codes import Code, ConeReason, DayReason, MessageReason, ValueReason


@dataclass(frozen=True, slots=True)
class Reason:
    """A code with what it means, and what to do."""

    code: Code
    meaning: str
    remedy: str


_AGAIN = "get that part of the archive again and run the day again"
_REPORT = "If a second, independent source gives the same bytes, please report it"
_IN_ORDER = "Nothing is to be done for the day: it is published without this input."

TITLES = {
    "Input of IOTA networks": get_args(ConeReason),
    "Input of Wormhole": tuple(
        reason for reason in get_args(MessageReason) if reason not in get_args(ConeReason)
    ),
    "Days": get_args(DayReason),
    "Transfers without a value in dollars": get_args(ValueReason),
}
"""The codes by the runbook's chapters; those of both kinds of input stand in the first."""

REASONS: dict[str, Reason] = {
    reason.code: reason
    for reason in (
        Reason(
            "malformed",
            "A line is no record, or bytes do not decode: a block, milestone, output, VAA or observation.",
            "Look at the bytes with `permalake quarantine show ORIGIN`. A file that was cut off or "
            "changed is "
            "fetched again. A single VAA or observation needs nothing; of IOTA, the day stays unpublished "
            "where the milestone needs what is malformed: then run the day again over the mended source.",
        ),
        Reason(
            "undecodable",
            "Rows cannot be made of a milestone or message, although its bytes passed the first checks.",
            "This is a fault of the decoder, not of the source: report it with the bytes that "
            "`permalake quarantine show ORIGIN` prints. After the fix, `permalake quarantine retry` "
            "tries again.",
        ),
        Reason(
            "id_mismatch",
            "The bytes hash to another id than the source says.",
            f"The file was changed, or its record holds another object's bytes: {_AGAIN}.",
        ),
        Reason(
            "milestone_conflict",
            "The source holds two different payloads of one milestone.",
            "Remove the one that is not of this network, then run the day again. Two folders of different "
            "networks below one path are the usual cause.",
        ),
        Reason(
            "milestone_signature",
            "A milestone is not signed as the network demands.",
            "Check `coordinator_public_keys` and `coordinator_threshold` of the network: keys change at "
            f"milestones. If they are right, the payload is not the network's: {_AGAIN}.",
        ),
        Reason(
            "milestone_time",
            "A milestone's time does not fit its index or its day.",
            f"The index or the time in the source is wrong: {_AGAIN}.",
        ),
        Reason(
            "milestone_missing",
            "Blocks belong to a milestone that the source does not hold.",
            f"Complete the source: {_AGAIN}.",
        ),
        Reason(
            "milestone_gap",
            "The source lacks milestones of the day, the one before it, or some between it and the next day.",
            "Complete the source from the milestone that the line names. A day also needs the last "
            "`look_back` "
            "milestones of the day before it.",
        ),
        Reason(
            "milestone_link",
            "A milestone does not name the one before it as its predecessor.",
            f"One of the two is not of this network's chain: compare both with a node, then {_AGAIN}.",
        ),
        Reason(
            "milestone_message_missing",
            "The message that carries a Chrysalis milestone is not in the source.",
            f"Complete the source with that message: {_AGAIN}.",
        ),
        Reason(
            "receipt_amount",
            "A receipt creates another amount than it takes from the treasury.",
            f"The milestone's payload is not the network's: {_AGAIN}. {_REPORT}.",
        ),
        Reason(
            "parent_missing",
            "A block refers to a parent that is neither in the source nor referenced nearby.",
            "Fetch the parent that the line names. If it exists further back than the line says, raise "
            "`look_back` of the network. A node may have pruned it: use another node, or an archive.",
        ),
        Reason(
            "not_in_cone",
            "The source gives a milestone blocks that its cone does not reach.",
            f"These blocks are of another milestone, or a block between is changed: {_AGAIN}.",
        ),
        Reason(
            "cone_size",
            "A milestone has another number of blocks than the source says.",
            f"Blocks are missing or too many: {_AGAIN}.",
        ),
        Reason(
            "white_flag_order",
            "A block has another place in the order of its milestone than the source says.",
            f"The source's metadata is wrong or of another milestone: {_AGAIN}. {_REPORT}.",
        ),
        Reason(
            "inclusion_state",
            "The source's state of a block does not fit its payload: only transactions have an outcome.",
            f"The metadata of this block is another block's: {_AGAIN}.",
        ),
        Reason(
            "inclusion_root",
            "The blocks of a milestone do not have the Merkle root that it states.",
            f"A block is missing, too many or changed: {_AGAIN}.",
        ),
        Reason(
            "applied_root",
            "The included transactions of a milestone do not have the Merkle root that it states.",
            f"The source marks the wrong transactions as included: fetch the metadata again, or {_AGAIN}.",
        ),
        Reason(
            "consumed_missing",
            "An included transaction consumes an output that the source does not hold.",
            f"Complete the file of consumed outputs: {_AGAIN}.",
        ),
        Reason(
            "consumed_unexpected",
            "The source holds a consumed output that no included transaction consumes.",
            f"It belongs to another milestone or network: remove it, or {_AGAIN}.",
        ),
        Reason(
            "consumed_conflict",
            "The source holds two different consumed outputs of one id.",
            "Compare both with a node, remove the wrong one, and run the day again.",
        ),
        Reason(
            "utxo_changes",
            "The source's own list of created and consumed outputs differs from what the blocks say.",
            f"The list or a block's state is wrong: {_AGAIN}. {_REPORT}.",
        ),
        Reason(
            "amount_mismatch",
            "Inputs and outputs of an included transaction differ in amount.",
            f"A consumed output in the source is not the real one: {_AGAIN}.",
        ),
        Reason(
            "transaction_signature",
            "A signature of an included transaction is not valid, or not its input's owner's.",
            f"A consumed output in the source is not the real one, or the block is changed: {_AGAIN}.",
        ),
        Reason(
            "inputs_commitment",
            "The consumed outputs of an included transaction are not those that it commits to.",
            f"A consumed output in the source is not the real one: {_AGAIN}.",
        ),
        Reason(
            "conflict_disagreement",
            "The outcome of a transaction is another one recomputed than by its source.",
            "The day is published with the source's outcome. See [conflicts differ](conflicts-differ.md).",
        ),
        Reason(
            "unknown_guardian_set",
            "A VAA names a guardian set that is not known here.",
            "Of a new set, add it to the guardian sets in the folder of `wormhole.reference`, then run "
            "`permalake quarantine retry`. Of a set that never was, the VAA is no real one: leave it.",
        ),
        Reason(
            "duplicate_guardian",
            "A VAA carries two signatures of one guardian.",
            f"The VAA is not valid anywhere. {_IN_ORDER}",
        ),
        Reason(
            "bad_signature",
            "A signature of a VAA or observation is not that guardian's over this message.",
            f"{_IN_ORDER} A good copy of a VAA is put beside the others; then run `permalake "
            "quarantine retry`.",
        ),
        Reason(
            "no_quorum",
            "A VAA has fewer valid signatures than its guardian set requires.",
            f"{_IN_ORDER} A copy with more signatures is put beside it; then run `permalake "
            "quarantine retry`.",
        ),
        Reason(
            "conflicting_digest",
            "Guardians signed two different bodies under one message id; none of them is published.",
            "This must not happen on mainnet: find out which body the emitter's chain has and tell the "
            "guardians. On a test network, remove the copies that do not count and retry.",
        ),
        Reason(
            "unknown_guardian",
            "An observation names a guardian that is not of the message's guardian set.",
            f"{_IN_ORDER} If the set lacks a guardian, mend the guardian sets of `wormhole.reference`.",
        ),
        Reason(
            "day_incomplete",
            "The node may still add milestones to the day.",
            "Run the day again once the node has a milestone of a later day; the schedule does so by itself.",
        ),
        Reason(
            "audit_failed",
            "The day's tables do not meet an expectation. Readers keep the last good state.",
            "Open the Data Docs that the line names; see [a day failed its audit](failed-audit.md).",
        ),
        Reason(
            "submit_ended",
            "The Spark submit ended before it could record why.",
            "The line gives its exit code. 137 or -9: memory ran out or somebody killed it. See the "
            "log of the "
            "step, raise memory, then run the day again.",
        ),
        Reason(
            "step_failed",
            "A step of the day's run failed, and the line says with what.",
            "Do what the line says; `permalake status --run RUN` shows the steps of the run and their logs. "
            "Then run the day again: what is done already is not done twice.",
        ),
        Reason(
            "late",
            "A day is not published by its deadline (`alerts.deadline`).",
            "Look at the run that the alert links. If it waits, a pool, a lease or a source holds it up; if "
            "there is none, start it.",
        ),
        Reason(
            "stale",
            "A published day rests on input that has changed since.",
            "The next run of the day builds it anew; see [stale days](stale-days.md).",
        ),
        Reason(
            "milestones_missing",
            "Between this day and the published day before it, milestones are missing.",
            "Build the days between; if there are none, the source lacks the milestones: "
            "see [input is missing](missing-source.md).",
        ),
        Reason(
            "milestones_overlap",
            "Two published days hold the same milestones.",
            "One of them was built from a source whose times are wrong, or from another network: build both "
            "again with `--force`.",
        ),
        Reason(
            "days_not_built",
            "Days between others were never built.",
            "Build them: `permalake run` with `--date` and `--to`, or a backfill; see "
            "[backfill](backfill.md).",
        ),
        Reason(
            "sequences_missing",
            "An emitter's sequences have a gap: messages that no source gave.",
            "Set `wormhole.guardian_url`, which fills gaps, or add the VAAs to the source; then run the day "
            "again with `--force`. Some emitters skip sequences: such a gap stays.",
        ),
        Reason(
            "gaps_unknown",
            "Gaps cannot be listed, because the metadata of `date_cache` is damaged or missing.",
            "Restore the table; see [restore](restore.md).",
        ),
        Reason(
            "store_behind",
            "A published day is not in every configured store yet.",
            "The next run serves it. If the store's error stands beside it, mend the store first.",
        ),
        Reason(
            "no_quote",
            "no provider has a quote near enough in time",
            'Raise `prices.window_hours`, or add quotes with `prices.provider = "file"`; then run '
            "`permalake run wormhole` with `--only enrich`.",
        ),
        Reason(
            "not_listed",
            "no provider knows the token",
            "Add the token's coin to the token list of `wormhole.reference`, or quotes of your own.",
        ),
        Reason(
            "not_answered",
            "a provider failed to answer, or its plan does not reach that far back",
            "Run `permalake run wormhole` with `--only enrich` once it answers; an API key may reach "
            "further back.",
        ),
        Reason(
            "not_asked",
            "no provider could be asked",
            "Configure `prices.provider`, then run `permalake run wormhole` with `--only enrich`.",
        ),
        Reason(
            "low_confidence",
            "the provider itself has less than prices.min_confidence in its quote",
            "Lower `prices.min_confidence` if you trust such quotes, then enrich the days again.",
        ),
        Reason(
            "outlier",
            "the quote is an outlier, and prices.exclude_outliers is set",
            "Look at the quote in `token_prices`. If it is right, unset `prices.exclude_outliers`.",
        ),
        Reason(
            "denied",
            "the token is on the deny list",
            "Nothing is to be done: the deny list of `wormhole.reference` names it.",
        ),
        Reason(
            "no_decimals",
            "the decimals of the token are not known",
            "Add the token to the token list, or configure the RPC of its chain, then enrich the days again.",
        ),
        Reason(
            "too_large",
            "the value is beyond the type",
            "Nothing is to be done: no real transfer is worth that much; the amount stands beside it.",
        ),
        Reason(
            "no_token",
            "the message does not name the token",
            "Nothing is to be done: the application's message does not tell it.",
        ),
        Reason(
            "no_amount",
            "the message does not tell the amount",
            "Nothing is to be done: the application's message does not tell it.",
        ),
    )
}


def runbook() -> str:
    """Return the runbook: a section per code, below the chapters of :data:`TITLES`."""
    lines = [
        "<!-- Generated from `contracts/reasons.py` by `make docs`; changes belong there. -->",
        "# Reasons, and what to do",
        "",
        "`permalake status`, `permalake quarantine list`, pages and alerts name these codes. A "
        "section says what "
        "a code means, then what to do.",
        "",
    ]
    for title, codes in TITLES.items():
        lines += [f"## {title}", ""]
        for code in codes:
            meaning = REASONS[code].meaning
            sentence = f"{meaning[0].upper()}{meaning[1:].rstrip('.')}."
            lines += [f"### {code}", "", sentence, "", REASONS[code].remedy, ""]
    return "\n".join(lines)
