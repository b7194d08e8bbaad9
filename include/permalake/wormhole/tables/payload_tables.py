"""Judged VAAs → payload tables, one row per published VAA of a bridge whose payload decodes."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.verified_vaas import published


def token_transfer_payload(vaas: DataFrame) -> DataFrame:
    """Return the rows of ``token_transfer_payload``."""
    return _of(vaas, "transfer")


def asset_meta_payload(vaas: DataFrame) -> DataFrame:
    """Return the rows of ``asset_meta_payload``."""
    return _of(vaas, "meta")


def nft_transfer_payload(vaas: DataFrame) -> DataFrame:
    """Return the rows of ``nft_transfer_payload``."""
    return _of(vaas, "nft")


def _of(vaas: DataFrame, payload: str) -> DataFrame:
    return published(vaas).where(F.col(payload).isNotNull()).select("row_key", f"{payload}.*", "date")
