"""Bytes of VAAs, payloads and addresses as columns, and back."""
