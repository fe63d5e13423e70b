"""Everything that a web worker needs for its life, made ready before it is locked in.

Rule: afterwards no file can be opened, so nothing may be left for later: libraries, codecs, certificates. A TLS
context that is built too late trusts nobody and does not say so; here, that there is somebody is checked.
"""

from typing import TYPE_CHECKING, Final

from workers.confine.steps import Prepared
from workers.libraries.unimported import without
from workers.web.web_inputs import WebInputs
from workers.wire import messages

if TYPE_CHECKING:
    import ssl

_UNUSED: Final = ("anyio", "trio", "soupsieve")
"""What httpcore and Beautiful Soup import where it is installed, for event loops and selectors that nobody uses here:
more than half of the time."""

_PART_OF_CALL: Final = 0.9
"""Of a call's time, for the fetch: an answer is better than being ended by the supervisor."""


def prepare(start: messages.Start, inputs: WebInputs) -> Prepared:
    """Import the libraries, build the TLS context, take the broker's socket.

    Raises:
        OSError: a file of certificates cannot be read.
        ValueError: one holds no certificate.
    """
    with without(_UNUSED):
        from workers.web.broker_client import BrokerClient
        from workers.web.charset import load_codecs
        from workers.web.fetcher import Fetcher
    load_codecs()
    context = tls_context(inputs.ca_file)
    seconds = inputs.fetch_s, start.call_s * _PART_OF_CALL
    engine = Fetcher(context, BrokerClient(start.broker_fd), *seconds, http=inputs.http)
    return Prepared(engine)


def tls_context(ca_file: str) -> "ssl.SSLContext":
    """Return a client's context that trusts the well-known authorities, and those of `ca_file` if there is one.

    Raises:
        OSError: a file cannot be read.
        ValueError: it holds no certificate.
    """
    import ssl

    import certifi

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["http/1.1"])
    for path in (certifi.where(), ca_file):
        if not path:
            continue
        before = context.cert_store_stats()["x509_ca"]
        try:
            context.load_verify_locations(cafile=path)
        except ssl.SSLError as error:
            raise ValueError(f"the file {path!r} holds no certificates (PEM) that can be read") from error
        except OSError as error:
            raise OSError(error.errno, f"the certificates in {path!r} cannot be read: {error.strerror}") from error
        if context.cert_store_stats()["x509_ca"] <= before and path != ca_file:
            raise ValueError(f"the file {path!r} holds no certificate of an authority")
    return context
