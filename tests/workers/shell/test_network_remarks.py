"""What is said of servers that failed a command, by what real programs said of them."""

from typing import Final

from tests.each_row import each_row
from workers.changes.effects import Traffic
from workers.shell.run.network_remarks import network_remarks, received

PLACE: Final = "a.example:443"
NAME, TIME, PROTOCOL, AUTHORITY = "another name", "has expired", "does not speak TLS", "authority"

SAID: Final[dict[str, tuple[str, str]]] = {
    "bun, name": ("ERR_TLS_CERT_ALTNAME_INVALID downloading package manifest tiny", NAME),
    "uv, name": ("invalid peer certificate: certificate not valid for name", NAME),
    "pnpm, name": ("(Connect): invalid peer certificate: certificate not\n  \u2502   valid for name", NAME),
    "cargo, name": ("SSL: no alternative certificate subject name matches target host name 'a.example'", NAME),
    "go, name": ("x509: certificate is valid for c.example, not a.example", NAME),
    "go, address": ("x509: cannot validate certificate for 10.0.0.1 because it doesn't contain any IP SANs", NAME),
    "yarn, name": ("Hostname/IP does not match certificate's altnames: Host: a.example. is not", NAME),
    "pip, name": ("certificate verify failed: Hostname mismatch, certificate is not valid for 'a.example'.", NAME),
    "composer, name": ("Peer certificate CN=`c.example' did not match expected CN=`a.example'", NAME),
    "npm, time": ("npm error code CERT_HAS_EXPIRED", TIME),
    "uv, time": ("invalid peer certificate: certificate expired: verification time 1795476939", TIME),
    "go, time": ("x509: certificate has expired or is not yet valid: current time", TIME),
    "npm, protocol": ("npm error code ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", PROTOCOL),
    "pnpm, protocol": ("(Connect): received fatal alert: ProtocolVersion", PROTOCOL),
    "bun, protocol": ("error: TLSHandshakeFailed downloading", PROTOCOL),
    "go, protocol": ("remote error: tls: protocol version not supported", PROTOCOL),
    "pip, plain http": ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", PROTOCOL),
    "npm, authority": ("reason: unable to verify the first certificate", AUTHORITY),
    "npm, self-signed": ("npm error code DEPTH_ZERO_SELF_SIGNED_CERT", AUTHORITY),
    "uv, authority": ("invalid peer certificate: UnknownIssuer", AUTHORITY),
    "cargo, authority": ("SSL certificate problem: unable to get local issuer certificate", AUTHORITY),
    "go, authority": ("x509: certificate signed by unknown authority", AUTHORITY),
    "git, authority": ("server certificate verification failed. CAfile: none CRLfile: none", AUTHORITY),
    "no certificate": ("404 not found", ""),
}


@each_row("row", SAID)
def test_a_certificate_that_does_not_count_is_told_with_its_host_and_what_to_do(row: str) -> None:
    printed, kind = SAID[row]
    remarks = network_remarks(
        1, f"https://a.example/tiny: {printed}", [Traffic(PLACE, 9, 9), Traffic("b.example:1", 9, 9)]
    )
    assert [kind in each and each.startswith(f"TLS with {PLACE} failed") for each in remarks] == [True] * bool(kind)
    assert network_remarks(0, printed, [Traffic(PLACE, 9, 9)]) == network_remarks(1, printed, []) == []


@each_row(
    "printed",
    [
        "npm error code E401",
        "401 Client Error: Unauthorized for url: https://a.example/simple",
        "User for a.example: ERROR: Exception: EOFError",
        "HTTP status client error (401 Unauthorized) for url",
        "failed to get successful HTTP response from `https://a.example/config.json`, got 401",
        "GET http://a.example/tiny: Unauthorized - 401",
        "error: GET http://a.example/tiny - 401",
        "YN0041: tiny@npm:^1.0.0: Invalid authentication (as an anonymous user)",
        "Authentication is required for a.example.",
        "authenticated registries require a credential-provider to be configured",
    ],
)
def test_who_wants_a_login_is_named_with_what_to_do(printed: str) -> None:
    (told,) = network_remarks(1, f"a.example {printed}", [Traffic(PLACE, 9, 9), Traffic("b.example:1", 9, 9)])
    assert told.startswith(f"{PLACE} wants a name and a password, and no command is given any")


@each_row(
    "printed",
    [
        "npm error code E429",
        "Too Many Requests - 429",
        "warn: registry asked to wait 60s before retrying",
        "HTTP status client error (429 Too Many Requests) for url",
        "failed to get successful HTTP response, got 429",
        "due to underlying error <bad response X 429 (http://a.example/specs)>",
        "reading http://a.example/tiny/@v/list: 429 Too Many Requests",
    ],
)
def test_who_asks_for_less_at_once_is_named_with_what_to_do(printed: str) -> None:
    (told,) = network_remarks(1, f"a.example {printed}", [Traffic(PLACE, 9, 9), Traffic("b.example:1", 9, 9)])
    assert told.startswith(f"{PLACE} asks for less at once (429)")
    assert network_remarks(1, "a.example: 429 packages", [Traffic(PLACE, 9, 9)]) == []


def test_of_a_command_that_was_killed_it_is_told_what_servers_had_sent() -> None:
    told = received([Traffic("b.example:1", 9, 0), Traffic(PLACE, 9, 1_234_567_890), Traffic("c.example:1", 9, 4000)])
    assert told == [f"by then {PLACE} had sent 1,234.6 MB", "by then c.example:1 had sent 0.0 MB"]


def test_who_answers_nothing_is_named() -> None:
    silent = [Traffic(f"{name}.example:443", 517, 0) for name in "abcd"]
    told = network_remarks(1, "", [*silent, Traffic("e.example:443", 1, 1)])
    assert told == ["a.example:443, b.example:443, c.example:443, ... took the connection and answered nothing"]
