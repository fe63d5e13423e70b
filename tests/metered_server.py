"""A Messages API on loopback that bills: tokens of each request by the bytes of its body, of each reply as it is long.

Rule: what was begun is billed, whether or not somebody hears its end.
"""

import json
import random
import socket
import threading
from collections.abc import Callable
from typing import Any

from tests.messages_server import MessagesServer, call_block, end, start, text_block
from tests.script_server import Recorded


class MeteredServer(MessagesServer):
    """Answers every request, and adds up what it bills.

    Args:
        wants: returns the calls that a request is answered with; none for an answer.
        longest: the most tokens that it would like to write; it writes what it is allowed to.
        per_token: bytes of a request that are one token.
        cuts: says of which requests, by their number, the reply is cut before its end.
    """

    def __init__(
        self,
        wants: Callable[[Any], list[tuple[str, dict[str, Any]]]] = lambda _body: [],
        *,
        longest: int = 2000,
        per_token: int = 4,
        cuts: Callable[[int], bool] = lambda _number: False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.billed = self.billed_input = self.billed_output = 0
        self._wants = wants
        self._longest = longest
        self._per_token = per_token
        self._cuts = cuts
        self._chance = random.Random(seed)
        self._meter = threading.Lock()

    def _answer(self, connection: socket.socket, request: Recorded) -> bool:
        request.refused = None
        used = len(json.dumps(request.body, ensure_ascii=False).encode()) // self._per_token
        with self._meter:
            self.requests.append(request)
            number = len(self.requests)
            wrote = min(self._chance.randint(1, self._longest), request.body["max_tokens"])
            self.billed += used + wrote
            self.billed_input += used
            self.billed_output += wrote
        usage = {"input_tokens": used, "output_tokens": wrote}
        calls = self._wants(request.body)
        blocks = [text_block(0, f"{number}.")]
        blocks += [call_block(at, name, given, f"toolu_{number}_{at}") for at, (name, given) in enumerate(calls, 1)]
        whole = start(usage) + "".join(blocks) + end("tool_use" if calls else "end_turn", usage)
        sent = whole.encode()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(sent)
        if self._cuts(number):
            connection.sendall(head + sent[: len(sent) // 2])
            return False
        connection.sendall(head + sent)
        return True
