"""Google's generateContent on the loopback: real HTTP/1.1 on a real socket, playing a script and judging every request.

Rule: as `tests/script_server.py`, whose scripts these are. It remembers the signatures that it has played: another is
refused where Gemini 3 looks at them, and so is a call that lacks its own.

In a test, whatever its event loop (the server lives in threads):

    with GeminiServer([reply("hello")]) as server:
        ... server.url, server.requests ...

As a program (prints its port, serves until its input ends or SIGTERM), for clients in processes of their own:

    python -m tests.gemini_server --script FILE
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.script_server import Recorded, ScriptServer, fault_of, must, serve_as_program

Call = tuple[str, Mapping[str, Any]]
USAGE: Final[Mapping[str, int]] = {"promptTokenCount": 1, "candidatesTokenCount": 5, "totalTokenCount": 6}
UNSIGNED: Final = "skip_thought_signature_validator"
_PATH: Final = re.compile(r"/v1(?:beta)?/models/([\w.:-]+):streamGenerateContent\?alt=sse")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_BODY: Final = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"}
_GENERATION: Final = {"maxOutputTokens", "temperature", "topP", "topK", "thinkingConfig", "candidateCount"}
_DATA: Final = {"text", "functionCall", "functionResponse", "inlineData", "executableCode", "codeExecutionResult"}
_STATES: Final = {"invalid_request_error": "INVALID_ARGUMENT", "not_found_error": "NOT_FOUND"}
_BESIDE: Final = {"thought", "thoughtSignature"}
_TYPES: Final = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}
_SCHEMA: Final = {
    *("type", "format", "title", "description", "nullable", "enum", "items", "maxItems", "minItems", "properties"),
    *("required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum"),
    *("anyOf", "example", "propertyOrdering", "default"),
}
_FORMATS: Final = {"STRING": {"enum", "date-time"}, "INTEGER": {"int32", "int64"}, "NUMBER": {"float", "double"}}


# what a reply looks like -----------------------------------------------------------------------------------


def event(payload: Mapping[str, Any]) -> str:
    """Return one event as it stands in a stream."""
    return f"data: {json.dumps(payload, ensure_ascii=False)}\r\n\r\n"


def chunk(parts: Sequence[Mapping[str, Any]], **more: Any) -> str:
    """Return an event with parts of the model's; `finish` is why it ended, `usage` what it cost."""
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish := more.get("finish"):
        candidate["finishReason"] = finish
    usage = more.get("usage", USAGE)
    told = {"candidates": [candidate], "modelVersion": "", "responseId": "r1"}
    return event(told | ({"usageMetadata": dict(usage)} if usage else {}))


def call(name: str, arguments: Mapping[str, Any], signature: str = "", call_id: str = "") -> dict[str, Any]:
    """Return the part of a call."""
    told: dict[str, Any] = {"functionCall": {"name": name, "args": dict(arguments)}}
    if call_id:
        told["functionCall"]["id"] = call_id
    return told | ({"thoughtSignature": signature} if signature else {})


def reply(
    text: str | Sequence[str] = "",
    calls: Sequence[Call] = (),
    *,
    signature: str = "",
    thoughts: Sequence[str] = (),
    ids: Sequence[str] = (),
    finish: str = "STOP",
    usage: Mapping[str, int] = USAGE,
) -> str:
    """Return a whole reply as event-stream text, as Gemini 3 sends it.

    The first call carries the signature; without calls it comes at the end, in a part whose text is empty.
    """
    pieces = [text] if isinstance(text, str) else list(text)
    told = [chunk([{"text": each, "thought": True}]) for each in thoughts]
    told += [chunk([{"text": each}]) for each in pieces if each]
    for number, (name, arguments) in enumerate(calls):
        signed = signature if number == 0 else ""
        told.append(chunk([call(name, arguments, signed, ids[number] if number < len(ids) else "")]))
    last = [{"text": "", "thoughtSignature": signature}] if signature and not calls else [{"text": ""}]
    return "".join([*told, chunk(last, finish=finish, usage=usage)])


def error(status: int, message: str, state: str = "INTERNAL", *, delay: str = "") -> dict[str, Any]:
    """Return an error answer as a streaming request gets it: a list of one; `delay` is RetryInfo's, as in "34s"."""
    told: dict[str, Any] = {"code": status, "message": message, "status": state}
    if delay:
        told["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    headers = {"content-type": "application/json; charset=UTF-8"}
    return {"status": status, "headers": headers, "body": json.dumps([{"error": told}], indent=2)}


# what a request must look like -----------------------------------------------------------------------------


def fault_in(body: Any, model: str = "gemini-3-test", known: frozenset[str] = frozenset()) -> str | None:
    """Say what the API would refuse in this request, or None; `known` are the signatures that the server has given."""

    def judge(sent: Any) -> None:
        must(isinstance(sent, dict), "the body must be a JSON object")
        must(set(sent) <= _BODY, f"Unknown names {sorted(set(sent) - _BODY)}")
        for one in sent.get("tools", []):
            _judge_tools(one["functionDeclarations"])
        if "systemInstruction" in sent:
            must(sent["systemInstruction"]["parts"][0]["text"].strip(), "systemInstruction: must not be empty")
        _judge_generation(sent.get("generationConfig", {}), model)
        contents = _merged(sent.get("contents"))
        _judge_contents(contents)
        _judge_signatures(contents, model, known)

    return fault_of(judge, body)


def _judge_tools(declarations: list[Any]) -> None:
    names = [one["name"] for one in declarations]
    must(len(set(names)) == len(names), "Duplicate function declaration found")
    for one in declarations:
        must(set(one) <= {"name", "description", "parameters"}, f"Unknown names in a declaration: {sorted(one)}")
        must(_NAME.fullmatch(one["name"]), f"Invalid function name {one['name']!r}")
        if "parameters" in one:
            must(one["parameters"]["type"] == "OBJECT", "parameters: must be an OBJECT")
            must(one["parameters"].get("properties"), "parameters.properties: should be non-empty for OBJECT type")
            _judge_schema(one["parameters"])


def _judge_schema(schema: Any) -> None:
    must(isinstance(schema, dict), "a schema must be an object")
    must(set(schema) <= _SCHEMA, f"Unknown name {sorted(set(schema) - _SCHEMA)}: Cannot find field.")
    kind = schema.get("type")
    must(kind in _TYPES or "anyOf" in schema, f"schema.type: {kind!r}")
    form = schema.get("format")
    must(form is None or form in _FORMATS.get(str(kind), ()), f"format: {form!r} is not supported for {kind} type")
    if "enum" in schema:
        must(kind == "STRING" and all(isinstance(one, str) and one for one in schema["enum"]), "enum: only strings")
    must(kind != "ARRAY" or "items" in schema, "items: missing field.")
    must(set(schema.get("required", ())) <= set(schema.get("properties", ())), "required: property is not defined")
    children = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    for child in [*children, *([schema["items"]] if "items" in schema else [])]:
        _judge_schema(child)


def _judge_generation(generation: Any, model: str) -> None:
    must(set(generation) <= _GENERATION, f"Unknown names in generationConfig: {sorted(generation)}")
    must(generation.get("maxOutputTokens", 1) > 0, "maxOutputTokens: must be positive")
    thinking = generation.get("thinkingConfig", {})
    must(set(thinking) <= {"includeThoughts", "thinkingBudget", "thinkingLevel"}, "thinkingConfig: unknown names")
    must(not {"thinkingBudget", "thinkingLevel"} <= set(thinking), "You can only set one of thinking budget and level.")
    if "thinkingLevel" in thinking:
        levels = {"LOW", "MEDIUM", "HIGH"} if "-pro" in model else {"MINIMAL", "LOW", "MEDIUM", "HIGH"}
        must("gemini-2" not in model, "Thinking level is not supported for this model.")
        must(thinking["thinkingLevel"] in levels, f"Thinking level {thinking['thinkingLevel']} is not supported")
    if "thinkingBudget" in thinking:
        least, most = (128, 32_768) if "-pro" in model else (0, 24_576)
        must(least <= thinking["thinkingBudget"] <= most, "The thinking budget is out of range.")
        must(
            thinking["thinkingBudget"] or not thinking.get("includeThoughts"), "Thoughts are only there with thinking."
        )


def _merged(contents: Any) -> list[dict[str, Any]]:
    """Return contents as the API reads them: what one role says in several is one."""
    must(isinstance(contents, list) and contents, "contents are required")
    merged: list[dict[str, Any]] = []
    for number, content in enumerate(contents):
        must(set(content) == {"role", "parts"} and content["parts"], f"contents[{number}]: needs role and parts")
        if merged and merged[-1]["role"] == content["role"]:
            merged[-1] = {**content, "parts": [*merged[-1]["parts"], *content["parts"]]}
        else:
            merged.append(content)
    return merged


def _judge_contents(contents: list[dict[str, Any]]) -> None:
    pending: list[dict[str, Any]] = []
    for number, content in enumerate(contents):
        where = f"contents[{number}]"
        must(content["role"] == ("model" if number % 2 else "user"), f"{where}: the first role must be user")
        for part in content["parts"]:
            must(len(set(part) & _DATA) == 1, f"{where}: a part must have one data field: {sorted(part)}")
            must(set(part) <= _DATA | _BESIDE, f"{where}: Unknown names {sorted(part)}")
            must(isinstance(part.get("text", ""), str), f"{where}: text must be a string")
        answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        _judge_answers(where, answers, pending)
        pending = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        for one in pending:
            must(content["role"] == "model", f"{where}: a function call is the model's")
            must(
                _NAME.fullmatch(one["name"]) and isinstance(one.get("args", {}), dict), f"{where}: a bad function call"
            )
    must(contents[-1]["role"] == "user", "Please ensure that the last content is the user's.")


def _judge_answers(where: str, answers: list[Any], pending: list[Any]) -> None:
    must(
        len(answers) == len(pending),
        f"{where}: the number of function response parts must equal that of function call parts of the call turn",
    )
    for answer, asked in zip(answers, pending, strict=True):
        must(answer["name"] == asked["name"], f"{where}: {answer['name']} answers {asked['name']}")
        must(answer.get("id") == asked.get("id"), f"{where}: the id {answer.get('id')} answers {asked.get('id')}")
        must(isinstance(answer["response"], dict), f"{where}: a response must be an object")


def _judge_signatures(contents: list[Any], model: str, known: frozenset[str]) -> None:
    if "gemini-2" in model:
        return
    for number, content in enumerate(contents):
        signatures = [part["thoughtSignature"] for part in content["parts"] if "thoughtSignature" in part]
        must(set(signatures) <= known | {UNSIGNED}, f"contents[{number}]: Thought signature is not valid.")
        calls = [part for part in content["parts"] if "functionCall" in part]
        must(
            not calls or calls[0].get("thoughtSignature"),
            f"Function call is missing a thought_signature in functionCall parts, position {number}",
        )


def _signatures(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(found := value.get("thoughtSignature"), str):
            yield found
        for child in value.values():
            yield from _signatures(child)
    elif isinstance(value, list):
        for child in value:
            yield from _signatures(child)


# the server ------------------------------------------------------------------------------------------------


class GeminiServer(ScriptServer):
    """Plays responses in order to whoever asks, as `ScriptServer` does; `given` are the signatures it has sent."""

    given: frozenset[str] = frozenset()

    def serves(self, path: str) -> bool:
        return _PATH.fullmatch(path) is not None

    def fault_in_request(self, request: Recorded) -> str | None:
        if not request.headers.get("x-goog-api-key"):
            return "Method doesn't allow unregistered callers. Please use API Key."
        found = _PATH.fullmatch(request.path)
        return fault_in(request.body, found[1] if found else "", self.given)

    def error(self, status: int, message: str, kind: str, **headers: str) -> dict[str, Any]:
        told = error(status, message, _STATES.get(kind, "INTERNAL"))
        told["headers"] |= {name.replace("_", "-"): value for name, value in headers.items()}
        return told

    def reply(self, text: str) -> str:
        return reply(text)

    def played(self, _request: Recorded, response: dict[str, Any]) -> dict[str, Any]:
        for line in response.get("sse", "").splitlines():
            if line.startswith("data: {"):
                self.given |= frozenset(_signatures(json.loads(line.removeprefix("data: "))))
        return response


if __name__ == "__main__":
    sys.exit(serve_as_program(GeminiServer))
