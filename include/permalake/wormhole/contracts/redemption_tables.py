"""Contract of the destination side of transfers: what became of them on the chain that they went to."""

from __future__ import annotations

from permalake.contracts.schema import AMOUNT, ROW_KEY, Column, Table

IN_FLIGHT, COMPLETED, FAILED, UNKNOWN = "in_flight", "completed", "failed", "unknown"
EXPLORER, RPC = "wormholescan", "rpc"


def _text(name: str, doc: str) -> Column:
    return Column(name, "string", doc, required=False)


REDEMPTIONS = Table(
    "redemptions",
    "wormhole",
    "What the source's operations, or the RPC of the target chain, told of a transfer's redemption, a row "
    "per answer that says something new. A completed answer is final; of others the newest counts.",
    (
        Column("row_key", "string", "EmitterChain:EmitterAddress:Sequence (v2 key).", pattern=ROW_KEY),
        Column(
            "target_chain",
            "int",
            "Chain of the redemption: the transfer's own (Wormhole chain id).",
            minimum=0,
            maximum=65535,
        ),
        _text(
            "target_tx_id",
            "Transaction on the target chain (0x-hex on EVM): the operation's targetChain.transaction.txHash "
            "or that of the log TransferRedeemed. Null where it is not known: NFT bridges emit no such log.",
        ),
        Column("redeemed_at", "timestamptz", "Time of that transaction's block.", required=False),
        _text("redeemer", "Sender of that transaction: targetChain.from, or from of its receipt."),
        Column(
            "status",
            "string",
            "completed; in_flight: not redeemed when asked; failed, unknown: a transaction that did not "
            "redeem it, or of which the explorer does not say (targetChain.status).",
            values=(IN_FLIGHT, COMPLETED, FAILED, UNKNOWN),
        ),
        Column(
            "fee",
            "string",
            "Fee of that transaction in the chain's own coin: targetChain.fee, or gasUsed x effectiveGasPrice"
            " + l1Fee of its receipt.",
            required=False,
            pattern=AMOUNT,
        ),
        _text("receiver_address", "Account that it paid: targetChain.balanceChanges, if they name just one."),
        _text("token_address", "Token that it paid, from the same place."),
        Column(
            "source",
            "string",
            "Who told: wormholescan (its operations) or rpc (the bridge's isTransferCompleted and its logs).",
            values=(EXPLORER, RPC),
        ),
        Column("asked_at", "timestamptz", "Time of the first such answer."),
    ),
    key=("row_key", "source", "asked_at"),
    sort=("row_key", "asked_at"),
    commit="side",
    lookups=("target_tx_id",),
    date_doc="UTC date of the transfer, which the redemption may follow by days.",
)

TABLES = (REDEMPTIONS,)
