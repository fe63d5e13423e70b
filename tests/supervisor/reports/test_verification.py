"""Proofs of sessions, and their verifier, which knows nothing of ours and takes nothing that differs by a byte."""

import ast
import hashlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from scripts import verify_proof
from scripts.verify_proof import Proof, Wrong, checked, compare, is_signed
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError
from supervisor.journal.facts import CallEnded, CallStarted, Replied, SessionDeleted, TurnEnded, TurnStarted
from supervisor.journal.journal import Journal
from supervisor.reports.verification import prove
from supervisor.system.installation_key import kept_key, kept_or_made
from tests.supervisor.command import Strongroom
from tests.supervisor.histories import DONE, opening_fact, script

VERIFIER: Final = Path(verify_proof.__file__)
SECRET: Final = "what the other session is about"
VECTORS: Final = {
    "": """d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a
        e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b
        d25bf5f0595bbe24655141438e7a100b""",
    "72": """3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c
        92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c
        387b2eaeb4302aeeb00d291612bb0c00""",
    "af82": """fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025
        6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659
        4a7c15e9716ed28dc027beceea1ec40a""",
    hashlib.sha512(b"abc").hexdigest(): """ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf
        dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e030
        3dca179c138ac17ad9bef1177331a704""",
}
"""Public key and signature of RFC 8032, section 7.1, by their messages."""


@pytest.fixture
def spoken(journal: Journal, settings: Settings, root: Path) -> Settings:
    """A home with a session, of which two rows stand between those of another one."""
    journal.append("s", opening_fact(root), TurnStarted(1, "What is \x1b[2Jin a.txt?"))
    journal.append("unseen-9", opening_fact(root), TurnStarted(1, SECRET))
    said = Replied(1, 0, [{"type": "text", "text": "I look."}], "tool_use", {})
    journal.append("s", said, CallStarted(1, "c", "read_file", "{}", False, "allow", ""))
    journal.append("s", CallEnded(1, "c", "read_file", True, "hello"), TurnEnded(1, "ok", ""))
    return settings


def proven(settings: Settings, session: str = "s") -> bytes:
    written = list[bytes]()
    assert prove(settings, session, 1.5, written.extend).problem == ""
    return b"".join(written)


@pytest.fixture
def good(spoken: Settings) -> bytes:
    return proven(spoken)


def why_wrong(data: bytes) -> str:
    with pytest.raises(Wrong) as wrong:
        checked(data)
    return str(wrong.value)


def test_the_verifier_imports_the_standard_library_alone_and_is_short() -> None:
    text = VERIFIER.read_text()
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name if isinstance(node, ast.Import) else node.module for node in found for alias in node.names}
    assert names <= sys.stdlib_module_names
    assert len(text.splitlines()) <= 200


@pytest.mark.parametrize("message", VECTORS)
def test_signatures_are_checked_as_rfc_8032_says(message: str) -> None:
    vector = bytes.fromhex(VECTORS[message])
    public, signature = vector[:32], vector[32:]
    assert is_signed(public, bytes.fromhex(message), signature)
    assert not is_signed(public, bytes.fromhex(message) + b"x", signature)
    assert not is_signed(public, bytes.fromhex(message), signature[:32] + bytes(32))
    more = int.from_bytes(signature[32:], "little") + verify_proof.ORDER
    assert not is_signed(public, bytes.fromhex(message), signature[:32] + more.to_bytes(32, "little"))


def test_a_stranger_checks_a_session_with_the_verifier_alone(strongroom: Strongroom, root: Path) -> None:
    model = f"scripted:{script(strongroom.folder, DONE)}"
    strongroom.batch("go", model=model)
    session = str(strongroom.results[0]["session"])
    done = strongroom.run("verify", "--proof", "s.proof", session[-6:], "--json")
    assert (done.code, strongroom.run("verify", "--json").json) == (0, done.json)
    assert (
        f"\nkey {done.json['fingerprint']} (Ed25519, public: {done.json['public_key']})" in strongroom.run("verify").out
    )
    file = strongroom.folder / "s.proof"
    assert [each.stat().st_mode & 0o777 for each in (file, strongroom.home / "proof_key.pem")] == [0o600] * 2
    command = [sys.executable, "-I", str(VERIFIER), str(file), "--key", done.json["fingerprint"]]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout.splitlines()
    assert told[1:] == [f"signed with the key {done.json['fingerprint']}", *told[2:3], "> go", "  Done.", "  (ok)"]
    strongroom.run("verify", "--proof", "s.proof", session).assert_refused("s.proof exists already", code=1)
    strongroom.run("verify", "--proof", "t.proof").assert_refused("A proof is of one session")
    strongroom.run("verify", "--proof", "t.proof", "nobody").assert_refused("No session 'nobody'")


def test_nothing_of_a_broken_journal_is_signed(spoken: Settings) -> None:
    with sqlite3.connect(spoken.journal) as connection:
        connection.execute("DROP TRIGGER facts_stay")
        connection.execute("UPDATE facts SET at = 0 WHERE session = 'unseen-9'")
    connection.close()
    assert prove(spoken, "s", 1.0, lambda _lines: pytest.fail("it is written")).broken_at == 3
    assert not spoken.proof_key.exists()


def test_no_word_of_other_sessions_is_in_a_proof(good: bytes) -> None:
    assert SECRET.encode() not in good
    assert b"unseen-9" not in good


def test_an_outline_moves_no_terminal(good: bytes) -> None:
    assert checked(good).outline[1:] == ["> What is  [2Jin a.txt?", "  I look.", "  * read_file: ok", "  (ok)"]


# what is found ----------------------------------------------------------------------------------------------


def lines_of(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def written(lines: Sequence[Any]) -> bytes:
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def signed_again(lines: Sequence[Any], settings: Settings) -> bytes:
    """Return these lines as the holder of the key could have signed them."""
    text = written(lines[:-1])
    key = kept_or_made(settings.proof_key)
    signature = key.sign(verify_proof.PREFIX + hashlib.sha512(text).hexdigest().encode())
    return text + written([{"signature": signature.hex()}])


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each field of JSON, and of JSON within its texts."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from fields(value[key], (*path, key))
    else:
        yield path


def changed(value: Any) -> Any:
    return value[:-1] + chr(ord(value[-1]) ^ 1) if isinstance(value, str) else value + 1


def test_each_field_of_a_proof_is_covered(good: bytes) -> None:
    lines = lines_of(good)
    ways = list(fields(lines))
    assert len(ways) == 8 + 6 * 4 + 1
    for way in ways:
        lines = lines_of(good)
        place = lines
        for key in way[:-1]:
            place = place[key]
        place[way[-1]] = changed(place[way[-1]])
        assert why_wrong(written(lines)), way


def test_each_byte_of_a_proof_is_covered(good: bytes) -> None:
    """One in 29 of them."""
    for at in range(0, len(good), 29):
        assert why_wrong(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]), at


def chain_to_another(row: dict[str, str]) -> None:
    text = bytes(32) + row["head"].encode() + row["body"].encode()
    row.update(previous="00" * 32, digest=hashlib.sha256(text).hexdigest())


def without_facts(lines: list[Any]) -> None:
    lines[0].update(facts=0)
    del lines[1:-1]


Lines = list[Any]
CUTS: Final[dict[str, tuple[str, Callable[[Lines], object]]]] = {
    "a fact is gone from the middle": ("there are 5 facts of 6", lambda lines: lines.pop(4)),
    "one is chained to something else": ("row 6 does not follow", lambda lines: chain_to_another(lines[4])),
    "the first fact is gone": ("there are 5 facts of 6", lambda lines: lines.pop(1)),
    "the last fact is gone": ("there are 5 facts of 6", lambda lines: lines.pop(-2)),
    "two have changed places": ("row 5 stands after row 6", lambda lines: lines.insert(3, lines.pop(4))),
    "one stands twice": ("row 2 stands after row 2", lambda lines: lines.insert(3, lines[2])),
    "a body is another": (
        "row 2 is not what was written",
        lambda lines: lines[2].update(body=lines[2]["body"].replace("a.txt", "b.txt")),
    ),
    "a time is another": (
        "row 1 is not what was written",
        lambda lines: lines[1].update(head=lines[1]["head"].replace("]", "1]")),
    ),
    "it is of another session": ("row 1 is of another session", lambda lines: lines[0].update(session="other")),
    "it counts fewer facts": ("there are 6 facts of 5", lambda lines: lines[0].update(facts=5)),
    "another head": ("the journal's head is another", lambda lines: lines[0]["journal"].update(head="0" * 64)),
    "the journal ends before": ("the journal's head is another", lambda lines: lines[0]["journal"].update(rows=7)),
    "no facts": ("there are 0 facts of 0", without_facts),
    "another version": ("another version", lambda lines: lines[0].update(strongroom_proof=2)),
    "a digest is none": ("has no digests", lambda lines: lines[3].update(previous="x" * 64)),
    "a fact is no JSON": ("not the form", lambda lines: lines[2].update(head="[")),
    "a fact is missing a part": ("not the form", lambda lines: lines[2].pop("body")),
    "no key": ("not the form", lambda lines: lines[0].update(public_key="x")),
    "a short key": ("the signature", lambda lines: lines[0].update(public_key="00")),
}
"""What the chain and the statement show even where the text is signed, with the reason."""


@pytest.mark.parametrize("name", CUTS)
def test_a_signature_alone_does_not_make_a_proof(name: str, good: bytes, spoken: Settings) -> None:
    why, harm = CUTS[name]
    lines = lines_of(good)
    assert checked(signed_again(lines, spoken))
    harm(lines)
    assert why in why_wrong(signed_again(lines, spoken))


NOT_PROOFS: Final = {
    "empty": b"",
    "binary": bytes(range(256)),
    "a signature alone": b'\n{"signature":"' + b"0" * 128 + b'"}\n',
    "deep": b"[" * 100_000 + b'\n{"signature":"' + b"0" * 128 + b'"}\n',
    "no text": b'\xff\n{"signature":"' + b"0" * 128 + b'"}\n',
    "capitals": b'{}\n{"signature":"' + b"A" * 128 + b'"}\n',
}


@pytest.mark.parametrize("name", NOT_PROOFS)
def test_what_is_no_proof_is_said_to_be_none(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(NOT_PROOFS[name])
    assert verify_proof.main([str(tmp_path / "x")]) == 1
    assert capsys.readouterr().out.startswith("NOT PROVEN: it ")


def test_a_proof_of_another_key_or_that_is_cut_short_is_refused(
    good: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_bytes(good)
    assert verify_proof.main([str(tmp_path / "x"), "--key", "0" * 32]) == 1
    assert "another key" in capsys.readouterr().out
    for line in range(len(good.splitlines())):
        assert why_wrong(b"\n".join(good.split(b"\n")[:line]))
        assert why_wrong(b"".join(good.splitlines(keepends=True)[line + 1 :]))


def test_a_later_proof_goes_on_from_an_earlier_one(good: bytes, spoken: Settings, journal: Journal) -> None:
    journal.append("unseen-9", TurnEnded(1, "ok", ""))
    middle = proven(spoken)
    journal.append("s", SessionDeleted())
    later = checked(proven(spoken))
    compare(later, checked(good))
    compare(later, checked(middle))
    with pytest.raises(Wrong, match="cut back"):
        compare(checked(good), later)


def altered(proof: Proof, **other: Any) -> Proof:
    return proof._replace(**other)


def test_a_journal_that_was_written_anew_is_not_the_one_of_an_earlier_proof(good: bytes) -> None:
    proof = checked(good)
    for other, why in (
        (altered(proof, fingerprint="0"), "another key"),
        (altered(proof, statement={**proof.statement, "session": "t"}), "another session"),
        (altered(proof, digests={**proof.digests, 5: "0" * 64}), "not what is shown"),
        (altered(proof, digests={seq: each for seq, each in proof.digests.items() if seq != 2}), "not what is shown"),
        (altered(proof, statement={**proof.statement, "journal": {"rows": 8, "head": "0"}}), "is another"),
    ):
        with pytest.raises(Wrong, match=why):
            compare(proof, other)


# the key ----------------------------------------------------------------------------------------------------


def test_a_key_is_made_once_and_for_its_owner_alone(settings: Settings) -> None:
    assert kept_key(settings.proof_key) is None
    made = kept_or_made(settings.proof_key)
    assert kept_or_made(settings.proof_key).public == made.public
    assert settings.proof_key.stat().st_mode & 0o777 == 0o600
    assert is_signed(made.public, b"x", made.sign(b"x"))


@pytest.mark.parametrize("harm", ["no key", "others", "link"])
def test_a_key_that_cannot_be_used_is_never_replaced(harm: str, spoken: Settings, tmp_path: Path) -> None:
    kept_or_made(spoken.proof_key)
    if harm == "no key":
        spoken.proof_key.write_text("no key")
    elif harm == "others":
        spoken.proof_key.chmod(0o666)
    else:
        spoken.proof_key.rename(tmp_path / "key")
        spoken.proof_key.symlink_to(tmp_path / "key")
    before = spoken.proof_key.read_bytes()
    with pytest.raises(ConfigError, match="Move it away"):
        prove(spoken, "s", 1.0, list)
    assert spoken.proof_key.read_bytes() == before
