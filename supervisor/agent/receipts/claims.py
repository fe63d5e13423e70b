"""Claims of an answer: sentences in which a model says that something was done, or came out well.

Rule: pure, and conservative: what is denied, asked, planned, supposed, quoted or said of others is no claim, and
neither is what stands in code. A claim is what the forms of `claim_forms.py` find in one clause, in English; the rest
of an answer is nobody's business here. Texts are bounded, as a model may write anything.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from supervisor.agent.receipts.claim_forms import (
    ADDRESSES,
    CLEANLY,
    FILES,
    FORMS,
    HEDGED,
    NUMBERS,
    OPEN,
    OTHERS,
    PARTIAL,
    WHOLE,
    ClaimKind,
)


class Claim(NamedTuple):
    """One claim, in its own words."""

    kind: ClaimKind
    text: str
    """The clause, as a person reads it."""
    names: tuple[str, ...] = ()
    """Files, addresses or commands that it is about."""
    besides: tuple[str, ...] = ()
    """Files that it names besides those of its first list."""
    counts: tuple[int, ...] = ()
    """How many tests it says have passed."""
    whole: bool = False
    """It speaks of all there are."""


_FENCED: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_ASIDE: Final = re.compile(r"^[ \t]*(?:>|\||\$ |    \S|\t).*$", re.MULTILINE)
"""Quotations, tables and code by indentation."""
_QUOTED: Final = re.compile("\u201c[^\u201c\u201d\n]*\u201d|\"[^\"\n]*\"|(?<!\\w)'[^'\n]{8,}'(?!\\w)")
_CODE: Final = re.compile(r"`+([^`\n]+)`+")
_COMMANDS: Final = re.compile(r"⟨([^⟩]+)⟩")
_MARKS: Final = re.compile(
    "\\*\\*|__|~~|^[ \\t]*(?:[-*+\u2022]|\\d+[.)]|#+)[ \\t]+|[\u2705\u2714\u2611\U0001f389\u2713]\ufe0f?", re.MULTILINE
)
_SENTENCE: Final = re.compile(r"[^.!?\n]*(?:\.(?=[\w/.*@-])[^.!?\n]*)*[.!?\n]*")
_CLAUSE: Final = re.compile(
    r" ?(?:;|—|\u2013| - |(?<!tests)(?<!suite): |\((?=[a-z])"
    r"|,? (?:but|because|although|though|however|while|since|so) |, (?:and|which|then|so|as|with) "
    r"|, (?=(?:I|we|it|they|all|the|everything|now)\b)| and (?=(?:I|we|all|the|everything|it)\b)) ?",
    re.IGNORECASE,
)
_JOINS: Final = re.compile(r",? (?:and |as well as )?")
_ANSWER: Final = 40_000
_SENTENCES: Final = 3000
_CLAUSES: Final = range(4, 601)
"""Characters of an answer that are read, its last ones, and of a sentence and a clause that is one."""
_TOLD: Final = 160
"""Characters of a claim."""


def claims_in(answer: str) -> Iterator[Claim]:
    """Yield the claims of an answer, in their order; of one clause each kind once."""
    text = _FENCED.sub("\n", answer[-_ANSWER:].replace("\u2019", "'"))
    text = _QUOTED.sub(_without_quotes, _ASIDE.sub("", text))
    text = _MARKS.sub("", _CODE.sub(lambda found: f"⟨{found[1].strip()}⟩", text))
    for found in _SENTENCE.findall(text):
        sentence = " ".join(found.split())
        if sentence.endswith("?") or len(sentence) > _SENTENCES or OPEN.search(_without_code(sentence)):
            continue
        for clause in _CLAUSE.split(sentence):
            yield from _claims_of(clause.strip().strip(".!"))


def _claims_of(clause: str) -> Iterator[Claim]:
    plain = CLEANLY.sub("cleanly", clause)
    bare = _without_code(plain)
    if len(clause) not in _CLAUSES or HEDGED.search(bare) or OTHERS.search(bare):
        return
    shown, whole = clause.replace("⟨", "`").replace("⟩", "`")[:_TOLD], WHOLE.search(bare) is not None
    for kind, form in FORMS:
        if not form.search(plain) or (kind is ClaimKind.TESTS_PASS and PARTIAL.search(bare)):
            continue
        names = _names(kind, plain)
        if names or kind not in (ClaimKind.EDITED, ClaimKind.READ):
            listed = _first_list(plain, names) if kind is ClaimKind.EDITED else len(names)
            yield Claim(kind, shown, names[:listed], names[listed:], _counts(plain), whole)


def _names(kind: ClaimKind, clause: str) -> tuple[str, ...]:
    """Return what a claim is about, as its kind counts it."""
    match kind:
        case ClaimKind.FETCHED:
            found = ADDRESSES.findall(clause)
        case ClaimKind.COMMAND_WORKED:
            found = _COMMANDS.findall(clause)
        case _:
            files = FILES.findall(ADDRESSES.sub("", clause).replace("⟨", " ").replace("⟩", " "))
            found = [name for name in files if any(map(str.isalpha, name))]
    return tuple(dict.fromkeys(found))


def _first_list(clause: str, names: tuple[str, ...]) -> int:
    """Return how many names stand one after the other, with nothing but commas and `and` between them."""
    bare = clause.replace("⟨", "").replace("⟩", "")
    ends = bare.find(names[0]) + len(names[0])
    for number, name in enumerate(names[1:], 1):
        found = bare.find(name, ends)
        if _JOINS.fullmatch(bare[ends : max(found, ends)]) is None:
            return number
        ends = found + len(name)
    return len(names)


def _counts(clause: str) -> tuple[int, ...]:
    return tuple(int(next(filter(None, each))) for each in NUMBERS.findall(clause) if any(each))


def _without_code(text: str) -> str:
    return ADDRESSES.sub("", _COMMANDS.sub("⟨⟩", text))


def _without_quotes(found: re.Match[str]) -> str:
    """Return what stands for a quotation: a name stays, words do not."""
    inside = found[0][1:-1]
    return inside if FILES.fullmatch(inside) else "⟨⟩"
