"""Judged VAAs → tables of payloads and of applications, at most one row per published VAA."""

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


def application_messages(vaas: DataFrame) -> DataFrame:
    """Return the rows of ``application_messages``, one per published VAA."""
    return _of(vaas, "application")


def application_transfers(vaas: DataFrame) -> DataFrame:
    """Return the rows of ``application_transfers``."""
    return _of(vaas, "moved")


def relayer_deliveries(vaas: DataFrame) -> DataFrame:
    """Return the rows of ``relayer_deliveries``."""
    return _of(vaas, "delivery")


def _of(vaas: DataFrame, payload: str) -> DataFrame:
    return published(vaas).where(F.col(payload).isNotNull()).select("row_key", f"{payload}.*", "date")
