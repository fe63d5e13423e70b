"""A server that takes spans of OpenTelemetry on the loopback, and judges each request (`script_server.py`).

Rule: it takes what the official protocol buffers take, by their own reader of JSON; an id has its length, a span its
times in order, and none is its own parent.
"""

import base64
import json
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.script_server import ScriptServer, fault_of, must

TAKEN: dict[str, Any] = {"status": 200, "body": "{}"}


def spans_of(body: Any) -> list[dict[str, Any]]:
    return [span for each in body["resourceSpans"] for scope in each["scopeSpans"] for span in scope["spans"]]


def told(span: dict[str, Any]) -> dict[str, Any]:
    values = {each["key"]: each["value"] for each in span["attributes"]}
    return {key: next(iter(value.values())) for key, value in values.items()}


def fault_in_spans(body: Any) -> str | None:
    """Say what is wrong with a request, or None."""
    return fault_of(_judge, body)


def _judge(body: Any) -> None:
    read = json.loads(json.dumps(body))
    for span in spans_of(read):
        for name, size in (("traceId", 16), ("spanId", 8), ("parentSpanId", 8)):
            if name in span:  # in hexadecimal, where all other bytes are base64
                must(len(bytes.fromhex(span[name])) == size, f"{name}: {span[name]!r}")
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    try:
        request = ParseDict(read, ExportTraceServiceRequest())
    except ParseError as error:
        raise ValueError(str(error)) from error
    for one in (span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans):
        must(0 < one.start_time_unix_nano <= one.end_time_unix_nano, f"{one.name}: times")
        must(one.span_id != one.parent_span_id, f"{one.name}: its own parent")
        must({"gen_ai.operation.name"} <= {each.key for each in one.attributes}, f"{one.name}: no operation")


class OtlpReceiver(ScriptServer):
    """Takes spans; without a script it takes all."""

    PATH = "/v1/traces"

    def fault_in(self, body: Any) -> str | None:
        return fault_in_spans(body)

    def error(self, status: int, message: str, kind: str, **headers: str) -> dict[str, Any]:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        return {"status": status, "headers": told, "body": json.dumps({"code": kind, "message": message})}

    @property
    def spans(self) -> list[dict[str, Any]]:
        """The spans of all requests so far, also of those that were not taken."""
        return [span for body in self.bodies for span in spans_of(body)]
