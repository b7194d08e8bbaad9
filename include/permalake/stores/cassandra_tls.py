"""TLS towards Cassandra: PEM files for the driver, and the Java key stores that the Spark connector needs.

The servers' certificates are verified against ``cassandra.ssl_ca_file`` alone. Their host names are not: the
connector (3.5.1) switches that check off, and a cluster's nodes are found by address. The CA must therefore
be the cluster's own.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

from permalake.config.stores import CassandraSettings
from permalake.errors import ConfigError
from permalake.paths import HOME

# Java opens no store without a password. Neither file is protected by it: the first holds nothing secret, the
# second is readable by its user alone, as the key that it was made from.
_STORE_PASSWORD = "permalake"  # noqa: S105
_CONNECTOR = "spark.cassandra.connection.ssl"
# The connector's own two have no forward secrecy, need RSA keys, and are refused under TLS 1.3.
_CIPHERS = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
)


def context(settings: CassandraSettings) -> ssl.SSLContext | None:
    """Return the TLS context of a driver's session; None without ``ssl_ca_file``.

    Raises:
        ConfigError: A file is missing, or is not what its key says.
    """
    if settings.ssl_ca_file is None:
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    _checked("ssl_ca_file", settings.ssl_ca_file, made.load_verify_locations)
    if settings.ssl_cert_file:
        key = settings.ssl_key_file
        _checked("ssl_cert_file", settings.ssl_cert_file, lambda file: made.load_cert_chain(file, key))
    return made


def connector_options(settings: CassandraSettings) -> dict[str, str]:
    """Return the Spark connector's options; empty without ``ssl_ca_file``.

    The Java stores are made from the PEM files, in a folder below ``PERMALAKE_HOME`` that all nodes of a
    cluster must share.
    """
    if context(settings) is None or settings.ssl_ca_file is None:
        return {}
    options = {
        "enabled": "true",
        "enabledAlgorithms": ",".join(_CIPHERS),
        "trustStore.path": str(_trust_store(settings.ssl_ca_file)),
        "trustStore.password": _STORE_PASSWORD,
        "trustStore.type": "PKCS12",
    }
    if settings.ssl_cert_file and settings.ssl_key_file:
        options |= {
            "clientAuth.enabled": "true",
            "keyStore.path": str(_key_store(settings.ssl_cert_file, settings.ssl_key_file)),
            "keyStore.password": _STORE_PASSWORD,
            "keyStore.type": "PKCS12",
        }
    return {f"{_CONNECTOR}.{name}": value for name, value in options.items()}


def _checked(key: str, file: Path, load: Callable[[Path], object]) -> None:
    try:
        load(file)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"cassandra.{key}: {file} cannot be used ({reason}); give a PEM file") from None


def _trust_store(ca_file: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    pem = ca_file.read_bytes()

    def spell() -> bytes:
        trusted = [
            pkcs12.PKCS12Certificate(certificate, None)
            for certificate in x509.load_pem_x509_certificates(pem)
        ]
        return pkcs12.serialize_java_truststore(trusted, BestAvailableEncryption(_STORE_PASSWORD.encode()))

    return _made("trust", pem, spell)


def _key_store(cert_file: Path, key_file: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        load_pem_private_key,
        pkcs12,
    )

    chain, key = cert_file.read_bytes(), key_file.read_bytes()

    def spell() -> bytes:
        leaf, *issuers = x509.load_pem_x509_certificates(chain)
        private = load_pem_private_key(key, None)
        protection = BestAvailableEncryption(_STORE_PASSWORD.encode())
        return pkcs12.serialize_key_and_certificates(
            b"permalake",
            private,  # type: ignore[arg-type]  # any key that PEM can hold
            leaf,
            issuers,
            protection,
        )

    return _made("key", chain + key, spell)


def _made(kind: str, content: bytes, spell: Callable[[], bytes]) -> Path:
    """Return the store made from ``content``; it is written whole, readable by its user alone."""
    folder = HOME / "tls"
    file = folder / f"cassandra-{kind}-{hashlib.blake2b(content, digest_size=8).hexdigest()}.p12"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, partial = tempfile.mkstemp(dir=folder)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(spell())
        Path(partial).replace(file)
    return file
