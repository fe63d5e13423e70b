"""Names of hosts and addresses in `[web]`: what is brought into the normal form, and what is refused."""

from typing import Final

import pytest

from supervisor.categories.web import HostPort, WebConfig, address_port, allowed_entry, host_port
from tests.each_row import each_row


@each_row(
    ("text", "normal"),
    [
        ("github.com", "github.com"),
        ("GitHub.Com.", "github.com"),
        ("*.Example.ORG.", "*.example.org"),
        ("*.internal", "*.internal"),
        ("intranet", "intranet"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ],
)
def test_an_entry_has_a_normal_form(text: str, normal: str) -> None:
    assert allowed_entry(text) == normal


NO_ENTRIES: Final = [
    *("", ".", "*", "*.", "*.*.example.org", "a.*.example.org", "*example.org", "**.example.org"),
    *("https://github.com", "github.com/path", "github.com:443", "*.github.com:443", "user@github.com"),
    *("github..com", "-github.com", "g\u0131thub.com", "a b", "a\n"),
    *("127.0.0.1", "*.0.0.1", "::1", "[::1]", "2130706433"),
]
NO_HOST_AND_PORT: Final = [
    *("", ":", "github.com", ":443", "github.com:", "github.com:0", "github.com:65536", "github.com:-1"),
    *("github.com:+1", "github.com:0443", "github.com:443x", "github.com:٤"),
    *("*.example.org:443", "127.0.0.1:443", "[::1]:443"),
]
NO_ADDRESS_AND_PORT: Final = [
    *("", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.1:1", "2130706433:1", "0x7f.0.0.1:1"),
    *("127.0.0.01:1", "localhost:1", "::1:1", "[::1]", "[::1]:x", "[127.0.0.1]:1", "[fe80::1%lo]:1", "[::1]:1\n"),
]


@each_row("text", NO_ENTRIES, ids=ascii)
def test_text_that_is_no_name_is_no_entry_and_the_message_shows_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"'.*'") as caught:
        WebConfig(allow=(text,))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "place"),
    [("github.com:443", HostPort("github.com", 443)), ("A.Example.ORG.:65535", HostPort("a.example.org", 65535))],
)
def test_a_host_and_its_port(text: str, place: HostPort) -> None:
    assert host_port(text) == place


@each_row("text", NO_HOST_AND_PORT, ids=ascii)
def test_text_that_is_no_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"'.*'"):
        WebConfig(resolve={text: "127.0.0.1:1"})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:8443", HostPort("127.0.0.1", 8443)),
        ("[::1]:8443", HostPort("::1", 8443)),
        ("[0:0::0:1]:1", HostPort("::1", 1)),
        ("[::ffff:127.0.0.1]:1", HostPort("::ffff:7f00:1", 1)),
    ],
)
def test_an_address_and_its_port(text: str, place: HostPort) -> None:
    assert address_port(text) == place


@each_row("text", NO_ADDRESS_AND_PORT, ids=ascii)
def test_text_that_is_no_address_and_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no address and port"):
        WebConfig(resolve={"github.com:443": text})


def test_a_place_is_written_as_it_is_read() -> None:
    assert [str(address_port(text)) for text in ("127.0.0.1:1", "[::1]:2")] == ["127.0.0.1:1", "[::1]:2"]
