"""The broker: answers a worker's request with a connection, or with the reason why there is none.

Rule: the worker is taken for hostile. Every request is judged from its bytes on: is it one, is the host a name, is that
on the list, is the port. Only then is the name looked up, once; unless every address is public none is used, and what
is connected to is one of the checked addresses, never a name. The operator's `resolve` says of a host and port where
it is instead; that, and a mirror that they named in `[registries]`, alone lead to an address that is not public.

    request -> grammar -> list -> port -> look-up -> addresses -> connection -> the worker's, and ours is closed

Each worker has a dialog of its own: one that reads nothing, says nothing or asks without end holds up nobody else. A
request that comes while another is worked on replaces it.
"""

import logging
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from typing import Final

import trio

from supervisor.broker.addresses import why_not_public
from supervisor.broker.allowlist import Allowlist, NetworkAllowlist
from supervisor.broker.dialog import COMMAND_CONNECTIONS, CONNECTIONS, ConnectionRefusal, Dialog
from supervisor.broker.network import Resolver, connect
from supervisor.categories.web import HostPort, WebConfig, address_port, host_port
from supervisor.errors import reason
from workers.url import UrlError, host_name
from workers.wire import frames, messages

Resolve = Callable[[str, int], Awaitable[Iterable[str]]]
"""Host and port -> addresses. Raises OSError where there is none."""

Connect = Callable[[str, int], Awaitable[socket.socket]]
"""Address and port -> a connection, the caller's. Raises OSError."""

LOOKUP_S: Final = 10.0
CONNECT_S: Final = 5.0
"""Seconds for one address; the next one may do better."""

ADDRESSES: Final = 4
"""How many of a name's addresses are tried."""

_log: Final = logging.getLogger("strongroom.broker")


class Broker:
    """Serves any number of workers at once.

    Args:
        web: what the operator allows.
        resolve: looks a name up; by default the system's resolver.
        connect: connects to an address.
        places: what is allowed instead of what `web` allows; its `resolve` holds all the same.

    Raises:
        ValueError: an entry of `web` cannot be understood.
    """

    def __init__(
        self,
        web: WebConfig,
        resolve: Resolve | None = None,
        connect: Connect = connect,
        places: NetworkAllowlist | None = None,
    ) -> None:
        self._allowed = places or Allowlist(web.allow, web.ports)
        self._named = places.named if places else frozenset()
        self._connections = COMMAND_CONNECTIONS if places else CONNECTIONS
        self._instead = {host_port(name): address_port(place) for name, place in web.resolve.items()}
        self._resolve: Resolve = resolve or Resolver()
        self._connect = connect

    async def serve(self, worker: socket.socket, running: Callable[[], int]) -> None:
        """Answer one worker until it has gone or asked too much, or until cancelled; nothing that it says raises.

        Args:
            worker: our end of its socket (SOCK_SEQPACKET); stays the caller's, and has ended afterwards.
            running: the id of the call that the worker runs, 0 while it runs none.
        """
        dialog = Dialog(worker, running, self._connections)
        try:
            while (request := await dialog.next_request()) is not None:
                await self._serve(dialog, request)
        finally:
            dialog.close()

    async def _serve(self, dialog: Dialog, request: bytes) -> None:
        """Answer one request; whatever happens, no connection stays open here."""
        asked = _decoded(request)
        number = asked.id if isinstance(asked, messages.Connect) else 0
        answer: messages.Brokered = messages.Declined("cancelled", "Another request has replaced this one.", number)
        with ExitStack() as kept:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_when_interrupted, dialog, nursery.cancel_scope)
                try:
                    dialog.check_call()
                    wanted = self._judge(asked)
                    address, connection = await self._open(wanted)
                    kept.enter_context(connection)
                    dialog.check_call()
                    answer = messages.Connected(address, number)
                    _log.info("connected %s at %s", wanted, address)
                except ConnectionRefusal as refusal:
                    answer = messages.Declined(refusal.kind, str(refusal), number)
                    _log.info("refused (%s): %s", refusal.kind, refusal)
                nursery.cancel_scope.cancel()
            await dialog.send_answer(answer, connection if isinstance(answer, messages.Connected) else None)

    def _judge(self, asked: messages.Connect | frames.FrameError) -> HostPort:
        """Return where the worker wants to go, if it may.

        Raises:
            ConnectionRefusal: it may not, or the request is invalid.
        """
        try:
            if isinstance(asked, frames.FrameError):
                raise asked
            place = HostPort(asked.host, asked.port)
            if place not in self._named:
                place = HostPort(host_name(asked.host), asked.port)
        except (frames.FrameError, UrlError) as error:
            raise ConnectionRefusal("invalid_arguments", str(error)) from error
        if why := self._allowed.why_not(place):
            raise ConnectionRefusal("domain_not_allowed", why)
        return place

    async def _open(self, wanted: HostPort) -> tuple[str, socket.socket]:
        """Return the address of a place that is allowed, and a connection to it.

        Raises:
            ConnectionRefusal: there is none.
        """
        instead = self._instead.get(wanted)
        if instead is None and wanted in self._named and wanted.host.replace(".", "").isdigit():
            instead = wanted
        places = [instead] if instead else [HostPort(each, wanted.port) for each in await self._addresses(wanted)]
        places = places[:ADDRESSES]
        trouble: OSError | None = None
        for place in places:
            with trio.move_on_after(CONNECT_S):
                try:
                    return place.host, await self._connect(*place)
                except OSError as error:
                    trouble = error
        if trouble is None:
            raise ConnectionRefusal(
                "timeout", f"{wanted} does not answer ({', '.join(place.host for place in places)})."
            )
        raise ConnectionRefusal("fetch_failed", f"{wanted} cannot be connected to: {reason(trouble)}.")

    async def _addresses(self, wanted: HostPort) -> list[str]:
        """Look a name up, once; every address is public.

        Raises:
            ConnectionRefusal: there is none, or one that is not.
        """
        try:
            with trio.fail_after(LOOKUP_S):
                found = list(await self._resolve(*wanted))
        except trio.TooSlowError as error:
            raise ConnectionRefusal(
                "timeout", f"The name {wanted.host} was not resolved within {LOOKUP_S:.0f} s."
            ) from error
        except (OSError, UnicodeError) as error:
            why = reason(error)
            raise ConnectionRefusal("fetch_failed", f"The name {wanted.host} was not resolved: {why}.") from error
        if not found:
            raise ConnectionRefusal("fetch_failed", f"The name {wanted.host} has no address.")
        for address in found if wanted not in self._named else ():
            if why := why_not_public(address):
                raise ConnectionRefusal(
                    "address_not_allowed",
                    f"Address not allowed: {wanted.host} is at {ascii(address[:64])[1:-1]}, which is {why}. "
                    "Only public addresses are connected to, unless [web] resolve in config.toml names another or "
                    "[registries] a mirror.",
                )
        return found


def _decoded(request: bytes) -> messages.Connect | frames.FrameError:
    try:
        return frames.decode_connect(request)
    except frames.FrameError as error:
        return error


async def _cancel_when_interrupted(dialog: Dialog, scope: trio.CancelScope) -> None:
    await dialog.wait_for_interruption()
    scope.cancel()
