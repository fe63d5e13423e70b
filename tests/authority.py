"""A certificate authority for tests: server contexts for any name, and for every way not to prove it.

Rule: a row of `TLS_FAULTS` is a context with real certificates of which one thing is wrong.
"""

import datetime as dt
import ssl
import threading
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority, and server contexts for any name and any fault."""

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self._lock = threading.Lock()
        self._contexts: dict[tuple[str, str], ssl.SSLContext] = {}

    def write(self, file: Path) -> Path:
        """Write the authority's own certificate, for a client that shall trust it; return `file`."""
        file.write_bytes(self._ca.cert_pem.bytes())
        return file

    def context(self, name: str, fault: str = "") -> ssl.SSLContext:
        """Return a server's context with a certificate for `name`, or with one that has a fault."""
        with self._lock:
            if (name, fault) not in self._contexts:
                self._contexts[name, fault] = self._made(name, fault)
            return self._contexts[name, fault]

    def begin(self, fault: str) -> ssl.SSLContext:
        """Return a context of the caller's own, for names that it does not know yet."""
        return self._made("any.invalid", fault)

    def _made(self, name: str, fault: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        TLS_FAULTS[fault](self._ca, name, context)
        return context


def _self_signed(_ca: trustme.CA, name: str, context: ssl.SSLContext) -> None:
    with trustme.Blob(_vouching_for_itself(name)).tempfile() as file:
        context.load_cert_chain(file)


def _tls10_only(ca: trustme.CA, name: str, context: ssl.SSLContext) -> None:
    ca.issue_cert(name).configure_cert(context)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1


def _yesterday() -> dt.datetime:
    return dt.datetime.now(dt.UTC) - dt.timedelta(days=1)


TLS_FAULTS: Final[Mapping[str, Callable[[trustme.CA, str, ssl.SSLContext], None]]] = MappingProxyType(
    {
        "": lambda ca, name, context: ca.issue_cert(name).configure_cert(context),
        "wrong_name": lambda ca, name, context: ca.issue_cert(f"not-{name}", "localhost").configure_cert(context),
        "name_is_ip": lambda ca, _, context: ca.issue_cert("127.0.0.1").configure_cert(context),
        "self_signed": _self_signed,
        "expired": lambda ca, name, context: ca.issue_cert(name, not_after=_yesterday()).configure_cert(context),
        "untrusted_ca": lambda _, name, context: trustme.CA().issue_cert(name).configure_cert(context),
        "tls10_only": _tls10_only,
    }
)
"""How a server fails to prove who it is; besides, "hang_in_handshake" says nothing at all."""


@cache
def _vouching_for_itself(name: str) -> bytes:
    """Return a key and a certificate that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(_yesterday()).not_valid_after(now + dt.timedelta(days=30))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return certificate + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
