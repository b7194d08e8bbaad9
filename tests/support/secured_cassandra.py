"""A real Cassandra that wants a login, and TLS with certificates of both sides, made for the test."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

from permalake.config.stores import CassandraSettings
from permalake.errors import PermalakeError
from permalake.local.services.cassandra import Cassandra
from permalake.local.services.control import LIBRARY
from permalake.local.services.daemon import LOOPBACK, free_port
from permalake.stores import cassandra

USER, PASSWORD = "writer", "cassandraZ7s3cr3tZ7"
STORE_PASSWORD = "store-of-a-test"


class Authority:
    """A certificate authority, and what it signs for either side."""

    def __init__(self, name: str) -> None:
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._signed(self.name, self.key.public_key(), authority=True)

    def issue(self, name: str, *hosts: str):
        """A key and a certificate for it."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return key, self._signed(subject, key.public_key(), hosts=hosts)

    def pem(self, file):
        file.write_bytes(self.certificate.public_bytes(Encoding.PEM))
        return file

    def _signed(self, subject, public, *, hosts=(), authority=False):
        now = datetime.now(UTC)
        built = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if hosts:
            built = built.add_extension(x509.SubjectAlternativeName([_general(one) for one in hosts]), False)
        return built.sign(self.key, hashes.SHA256())


def _general(host):
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def write_pem(folder, name, key, certificate):
    """The key and the certificate as PEM files; returns (certificate, key)."""
    chain, private = folder / f"{name}.pem", folder / f"{name}.key"
    chain.write_bytes(certificate.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return chain, private


@dataclass(frozen=True)
class SecuredCassandra(Cassandra):
    """A node with PasswordAuthenticator and mandatory client encryption on its only port."""

    authority: Authority | None = None

    def healthy(self) -> bool:
        """Whether the node lets its superuser in, whom it makes some time after it has opened its port."""
        try:
            ssl.get_server_certificate((LOOPBACK, self.port), timeout=2)
            with cassandra.session(self.superuser):
                return True
        except (OSError, PermalakeError):
            return False

    @cached_property
    def superuser(self) -> CassandraSettings:
        """How the superuser that a new node has reaches it, with a certificate in the node's folder."""
        chain, key = write_pem(self.folder, "client", *self.authority.issue("permalake"))
        return CassandraSettings(
            contact_points=(LOOPBACK,),
            port=self.port,
            username="cassandra",
            password="cassandra",
            ssl_ca_file=self.authority.pem(self.folder / "ca.pem"),
            ssl_cert_file=chain,
            ssl_key_file=key,
        )

    def _settings(self, storage_port):
        key, certificate = self.authority.issue("cassandra", LOOPBACK)
        protection = BestAvailableEncryption(STORE_PASSWORD.encode())
        own, trusted = self.folder / "node.p12", self.folder / "clients.p12"
        own.write_bytes(pkcs12.serialize_key_and_certificates(b"node", key, certificate, None, protection))
        accepted = [pkcs12.PKCS12Certificate(self.authority.certificate, None)]
        trusted.write_bytes(pkcs12.serialize_java_truststore(accepted, protection))
        return {
            **super()._settings(storage_port),
            "authenticator": "PasswordAuthenticator",
            "authorizer": "CassandraAuthorizer",
            "client_encryption_options": {
                "enabled": True,
                "optional": False,
                "require_client_auth": True,
                "keystore": str(own),
                "keystore_password": STORE_PASSWORD,
                "truststore": str(trusted),
                "truststore_password": STORE_PASSWORD,
                "store_type": "PKCS12",
            },
        }


def node(folder):
    """A node that is not started yet, with an authority of its own."""
    return SecuredCassandra(folder / "node", LIBRARY, free_port(), Authority("cluster"))


def writer(server):
    """Create a role that may write; return its settings."""
    with cassandra.session(server.superuser) as session:
        session.execute(f"CREATE ROLE {USER} WITH PASSWORD = '{PASSWORD}' AND LOGIN = true")
        session.execute(f"GRANT ALL ON ALL KEYSPACES TO {USER}")
    return with_values(server.superuser, username=USER, password=PASSWORD)


def with_values(settings, **values):
    """The settings with other values, checked."""
    return CassandraSettings(**dict(settings) | values)
