"""Signs in the output of a command, and in what its connections carried, of a server that failed it. Pure.

Rule: what is said of a server is true whatever the command printed, but for the kind of a TLS failure, which is the
command's own word: it alone sees the certificate.
"""

import re
from collections.abc import Sequence
from typing import Final

from workers.changes.effects import Traffic

_LOOKED_AT: Final = 2**14
"""Characters of the end of the output."""
_NAMED: Final = 3

_NO_VERSION: Final = "(from versions: none)"
_INDEX: Final = (
    "pip's 'from versions: none' can also mean that an index has failed: run it with -v to see how that answered"
)
_NAME: Final = (
    r"ALTNAME_INVALID|[Hh]ostname mismatch|IP address mismatch|no alternative certificate subject|NotValidForName"
    r"|certificate is (?:not )?valid for|not valid for name|(?:does not|doesn't) match (?:target host|either of '|')"
    r"|does not match certificate's altnames|doesn't contain any IP SAN|did not match expected CN"
)
_TIME: Final = (
    r"certificate has expired|CERT_HAS_EXPIRED|CERT_NOT_YET_VALID|not yet valid|peer certificate: Expired"
    r"|CertificateExpired|certificate expired"
)
_PROTOCOL: Final = (
    r"WRONG_VERSION_NUMBER|wrong version number|first record does not look like a TLS|UNSUPPORTED_PROTOCOL"
    r"|InvalidContentType|corrupt message|(?i:tlsv1.alert|protocol.version|handshake.?fail)|fatal alert|SSL routines"
    r"|UNEXPECTED_EOF|packet length too long|record layer failure|EPROTO"
)
_AUTHORITY: Final = (
    r"SELF_SIGNED_CERT|self[- ]signed certificate|UNABLE_TO_(?:VERIFY|GET_ISSUER)|unable to (?:get|verify)[^\n]*"
    r"(?:issuer|certificate)|UnknownIssuer|unknown (?:authority|ca\b|issuer)|CERTIFICATE_VERIFY_FAILED"
    r"|SSL certificate problem|certificate verif\w+ failed|CaUsedAsEndEntity|invalid peer certificate"
)
_LOGIN: Final = (
    r"\bE401\b|Unauthorized - 401|\bGET https?://\S+ - 401\b|YN0041|Authentication is required for (?!http)"
    r"|authenticated registries require|\b401 (?:Client Error|\(?Unauthorized)"
    r"|(?:status|code|got|HTTP)\b.{0,16}\b401\b|\bUser for [^ ]+:"
)
_BUSY: Final = (
    r"\bE429\b|\b429 Too Many|Requests - 429|registry asked to wait|status client error \(429|bad response \S+ 429"
    r"|(?:status|code|got|HTTP)\b.{0,16}\b429\b"
)
_WAITS: Final = "asks for less at once (429): wait a while before you try again, or name in [registries] a mirror"
_WANTS: Final = (
    "wants a name and a password, and no command is given any: name in [registries] a mirror that wants none"
)
_TLS: Final = (
    (_NAME, "its certificate is for another name: name the host as the certificate does (a mirror in [registries])"),
    (_TIME, "its certificate has expired, or is not valid yet: look at this machine's clock, and tell whoever runs it"),
    (_PROTOCOL, "it does not speak TLS as it should: a mirror without TLS is written with http:// in [registries]"),
    (_AUTHORITY, "nobody here trusts its certificate's authority: the operator can name it in ca_file of [web]"),
)
"""What programs say of a certificate, and what that means; the first that is found counts."""


def network_remarks(code: int, printed: str, traffic: Sequence[Traffic]) -> list[str]:
    """Return what is to be said of servers to whoever reads a command's result.

    Args:
        code: its exit code; not 0 where it was killed.
        printed: its output.
        traffic: what its connections carried.
    """
    if not code or not traffic:
        return []
    silent = [each.place for each in traffic if each.up and not each.down]
    remarks = [f"{_listed(silent)} took the connection and answered nothing"] if silent else []
    remarks += [_INDEX] if _NO_VERSION in printed[-_LOOKED_AT:] else []
    text = re.sub(r"[\s\u2502]+", " ", printed[-_LOOKED_AT:])  # some break lines, and draw beside them
    places = [each.place for each in traffic]
    named = _listed([each for each in places if each.rpartition(":")[0] in text] or places)
    tls = next((meaning for pattern, meaning in _TLS if re.search(pattern, text)), "")
    remarks += [f"TLS with {named} failed: {tls}"] if tls else []
    remarks += [f"{named} {_WAITS}"] if re.search(_BUSY, text) else []
    return [*remarks, f"{named} {_WANTS}"] if re.search(_LOGIN, text) else remarks


def received(traffic: Sequence[Traffic]) -> list[str]:
    """Return what servers had sent to a command that was killed: one without end is seen by it."""
    told = [each for each in traffic if each.down][:_NAMED]
    return [f"by then {each.place} had sent {each.down / 10**6:,.1f} MB" for each in told]


def _listed(places: Sequence[str]) -> str:
    return ", ".join((*places[:_NAMED], *["..."] * (len(places) > _NAMED)))
