#!/usr/bin/env python3
"""Check a proof of `strongroom verify --proof`, offline, with Python's standard library and nothing of Strongroom.

It ends with 0 where every fact is what was signed, and prints an outline of the conversation; with 1 where not, and
says why. What it means: whoever has the key said that this session, up to this row of its journal, is these facts and
no others. Compare the fingerprint with one that you had from its owner by another way: anybody can make a key. Not
shown is that the facts are true (the owner of a key can sign any story), that the clock was right, or that nothing
followed. Rows of other sessions stand between and are not in the file: across them the signature alone joins the chain.
`--earlier` takes a proof of before: then nothing that it showed may be changed, gone or cut back.

The file is lines of JSON: a statement, one for each fact, the signature. A fact's digest is SHA-256 over the digest of
the row before it, its head (row, session, seconds since 1970) and its body. The signature is Ed25519 (RFC 8032), over
"strongroom proof 1 " and the SHA-512 of all lines before it, in hexadecimal.
"""

import argparse
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

PREFIX = b"strongroom proof 1 "
ANCHOR = "00" * 32
LINES = re.compile(rb'(.*\n)\{"signature":"([0-9a-f]{128})"\}\n', re.DOTALL)
HEX = re.compile("[0-9a-f]{64}")
TOLD = {
    "SessionOpened": "profile {profile}, model {model}, Strongroom {version}",
    "TurnStarted": "> {text}",
    "Replied": "  {said}",
    "CallEnded": "  * {tool}: {kind}",
    "TurnEnded": "  ({status})",
}

# Ed25519, as RFC 8032 has it in section 6; points are (X, Y, Z, T) with x = X/Z, y = Y/Z, xy = T/Z ------------------

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]


def point_of(data: bytes) -> Point | None:
    """Return the point that 32 bytes stand for; None where they stand for none."""
    y, odd = int.from_bytes(data, "little") & (2**255 - 1), data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * ROOT % P
    if y >= P or (x * x - square) % P or (x == 0 and odd):
        return None
    x = x if x & 1 == odd else P - x
    return (x, y, 1, x * y % P)


def added(p: Point, q: Point) -> Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiplied(number: int, p: Point) -> Point:
    total = (0, 1, 1, 0)
    while number:
        total = added(total, p) if number & 1 else total
        p, number = added(p, p), number >> 1
    return total


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Say whether the holder of a public key has signed a message."""
    if len(public) != 32 or len(signature) != 64:
        return False
    key, nonce, s = point_of(public), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    base = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    if key is None or nonce is None or base is None or s >= ORDER:
        return False
    digest = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    left, right = multiplied(s, base), added(nonce, multiplied(digest, key))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 == (left[1] * right[2] - right[1] * left[2]) % P


class Wrong(Exception):
    """The proof does not hold, and why."""


class Proof(NamedTuple):
    """One that holds."""

    statement: dict[str, Any]
    fingerprint: str
    digests: dict[int, str]
    outline: list[str]


def must(holds: object, why: str) -> None:
    if not holds:
        raise Wrong(why)


def checked(data: bytes) -> Proof:
    """Return what a file proves.

    Raises:
        Wrong: it proves nothing.
    """
    if (parts := LINES.fullmatch(data)) is None:
        raise Wrong("it does not end with a signature: it is cut short, or no proof")
    try:
        statement, *rows = [json.loads(line) for line in parts[1].decode("utf-8").split("\n")[:-1]]
        digests = followed(statement, rows)
        told = outline([json.loads(row["body"]) for row in rows])
        public = bytes.fromhex(statement["public_key"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Wrong(f"it has not the form of a proof: {error!r:.100}") from error
    message = PREFIX + hashlib.sha512(parts[1]).hexdigest().encode()
    must(is_signed(public, message, bytes.fromhex(parts[2].decode())), "the signature is not that of this text and key")
    return Proof(statement, fingerprint_of(public), digests, told)


def followed(statement: dict[str, Any], rows: list[Any]) -> dict[int, str]:
    """Follow the chain through the facts; return the digest of each row, or raise Wrong."""
    must(statement["strongroom_proof"] == 1, "it is a proof of another version than 1")
    digests, last, head, journal = {}, 0, ANCHOR, statement["journal"]
    for row in rows:
        seq, session, _at = json.loads(row["head"])
        must(type(seq) is int and seq > last, f"row {seq!r:.20} stands after row {last}")
        must(session == statement["session"], f"row {seq} is of another session")
        must(HEX.fullmatch(row["previous"]) and HEX.fullmatch(row["digest"]), f"row {seq} has no digests")
        must(row["previous"] == head or seq > last + 1, f"row {seq} does not follow the row before it")
        text = bytes.fromhex(row["previous"]) + row["head"].encode() + row["body"].encode()
        must(hashlib.sha256(text).hexdigest() == row["digest"], f"row {seq} is not what was written")
        last, head = seq, row["digest"]
        digests[seq] = head
    must(len(rows) == statement["facts"] > 0, f"there are {len(rows)} facts of {statement['facts']!r:.20}")
    must(last < journal["rows"] or (last, head) == (journal["rows"], journal["head"]), "the journal's head is another")
    return digests


def fingerprint_of(public: bytes) -> str:
    """Return what people compare of a key: 128 bits of its SHA-256."""
    text = hashlib.sha256(public).hexdigest()[:32]
    return " ".join(text[at : at + 4] for at in range(0, 32, 4))


def compare(proof: Proof, earlier: Proof) -> None:
    """See that a proof shows all that an earlier one has shown; raise Wrong where not."""
    now, then = proof.statement, earlier.statement
    must(proof.fingerprint == earlier.fingerprint, "the earlier proof is signed with another key")
    must(now["session"] == then["session"], "the earlier proof is of another session")
    rows, seen = now["journal"]["rows"], then["journal"]["rows"]
    must(rows >= seen, "the journal was cut back since the earlier proof")
    before = {seq: digest for seq, digest in proof.digests.items() if seq <= seen}
    must(before == earlier.digests, "what the earlier proof showed is not what is shown here")
    head = {**proof.digests, rows: now["journal"]["head"]}.get(seen, then["journal"]["head"])
    must(head == then["journal"]["head"], "the journal of the earlier proof is another")


def outline(facts: list[dict[str, Any]]) -> list[str]:
    """Return a line for what was said and done, whatever bytes are in it."""
    lines = []
    for fact in facts:
        said = (
            " ".join(str(each.get("text", "")) for each in fact.get("content", [])) if fact["fact"] == "Replied" else ""
        )
        lines.append(TOLD.get(fact["fact"], "").format_map({"kind": "ok", **fact, "said": said}))
    printable = ("".join(c if c.isprintable() else " " for c in line)[:100].rstrip() for line in lines)
    return [line for line in printable if line]


def main(arguments: list[str] | None = None) -> int:
    """Check a file; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--key", default="", help="the fingerprint that it must be signed with")
    parser.add_argument("--earlier", type=Path, help="an earlier proof of the session, which this one must go on from")
    given = parser.parse_args(arguments)
    try:
        proof = checked(given.file.read_bytes())
        must(given.key.replace(" ", "") in ("", proof.fingerprint.replace(" ", "")), "it is signed with another key")
        if given.earlier is not None:
            compare(proof, checked(given.earlier.read_bytes()))
    except (OSError, Wrong) as error:
        print(f"NOT PROVEN: {error}")
        return 1
    journal = proof.statement["journal"]
    told = (
        f"session {proof.statement['session']}: {len(proof.digests)} facts, up to row {journal['rows']} of the journal"
    )
    print("\n".join([told, f"signed with the key {proof.fingerprint}", *proof.outline]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
