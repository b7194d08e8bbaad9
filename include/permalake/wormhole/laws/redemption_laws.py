"""Laws of redemptions: others' reports of a transfer agree with its VAA, the chain and each other.

All are warnings: answers are kept as they came, and a wrong one must not hold back a day of verified VAAs.
"""

from __future__ import annotations

from permalake.audit.laws import violations
from permalake.audit.suite import WARNING

_SENT = """
SELECT date, row_key, target_chain, payload_id = 1 AS is_plain FROM token_transfer_payload
UNION ALL SELECT date, row_key, target_chain, false AS is_plain FROM nft_transfer_payload
"""
_ORPHANS = f"""
SELECT told.date AS date, told.row_key AS place, 'a transfer to chain ' || told.target_chain AS expected,
    coalesce('one to chain ' || sent.target_chain, 'none') AS found
FROM redemptions AS told
LEFT JOIN ({_SENT}) AS sent ON told.date = sent.date AND told.row_key = sent.row_key
WHERE told.date IN (SELECT date FROM message_publication)
    AND (sent.target_chain IS NULL OR sent.target_chain <> told.target_chain)
"""
_EARLY = """
SELECT told.date AS date, told.row_key AS place,
    'not before ' || (epoch_us(events.timestamp) // 1000000) AS expected,
    epoch_us(redeemed_at) // 1000000 AS found
FROM redemptions AS told
JOIN message_publication AS events ON told.date = events.date AND told.row_key = events.row_key
WHERE epoch_us(redeemed_at) // 1000000 < epoch_us(events.timestamp) // 1000000
"""
_TWICE = """
SELECT date, row_key AS place, min(target_tx_id) AS expected, max(target_tx_id) AS found
FROM redemptions
WHERE status = 'completed' AND date IN (SELECT date FROM message_publication)
GROUP BY date, row_key
HAVING min(target_tx_id) <> max(target_tx_id)
"""
# A transfer with payload pays the contract that it names, which passes the tokens on.
_ELSEWHERE = f"""
SELECT redeemed.date AS date, redeemed.row_key AS place, details.{{expected}} AS expected,
    redeemed.{{actual}} AS found
FROM redemptions AS redeemed
JOIN ({_SENT}) AS sent ON redeemed.date = sent.date AND redeemed.row_key = sent.row_key
JOIN chain_details AS details ON redeemed.date = details.date AND redeemed.row_key = details.row_key
WHERE redeemed.status = 'completed' AND is_plain
    AND lower(redeemed.{{actual}}) <> lower(details.{{expected}})
"""

LAWS = (
    violations(
        "redemptions_are_of_transfers",
        "redemptions",
        "A redemption is of a published transfer to its chain.",
        _ORPHANS,
        severity=WARNING,
    ),
    violations(
        "redeemed_after_transfer",
        "redemptions",
        "A transfer is redeemed after its message.",
        _EARLY,
        severity=WARNING,
    ),
    violations(
        "redeemed_once",
        "redemptions",
        "All who tell of a completed redemption name the same transaction.",
        _TWICE,
        severity=WARNING,
    ),
    violations(
        "redemptions_reach_receivers",
        "redemptions",
        "A redemption pays the receiver in chain_details.",
        _ELSEWHERE.format(actual="receiver_address", expected="receiver_address"),
        severity=WARNING,
    ),
    violations(
        "redemptions_pay_resulting_tokens",
        "redemptions",
        "A redemption pays the resulting token in chain_details.",
        _ELSEWHERE.format(actual="token_address", expected="resulting_token_address"),
        severity=WARNING,
    ),
)
