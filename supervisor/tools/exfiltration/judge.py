"""Judge of URLs that could carry private text or keys out of this machine. Pure.

Rule: a page or a note can tell the model to put what it has read into an address. So an address that carries text of
the root, keys or other unreadable strings, or simply much, is a person's to decide; one that the person typed is
decided. The request itself is not looked at: `fetch_url` sends nothing else.

This catches what is written out, also percent-encoded, in base 16, 32, 64 and 85, backwards, in ROT13, with letters
that look alike, cut into parameters, their names and directories, and in the labels of a host name. It does not catch
a model that sends a few words at a time or invents a cipher; that is bounded by the flow ledger, and by the
allowlist.
"""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import unquote_plus

from supervisor.tools.exfiltration.comparable_text import comparable
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.exfiltration.origins import filled_in
from workers.url import Url, UrlError, parse

VERBATIM: Final = 24
"""Letters and digits in a row that stand in a private text, from which on a person is asked: about five words."""

LONGEST: Final = 120
MOST: Final = 400
"""Characters that one part of a path or query, and all together, may have without a question."""

_BLOCK: Final = VERBATIM // 2
"""A run of VERBATIM characters holds at least one whole block of this size, wherever it begins."""

_PLACES: Final = 10_000
"""Where blocks of an address stand more often than so, the text is not searched further: a person decides."""

_RANDOM: Final = 20
"""Characters of a string without readable words, from which on it may be a key."""
_RANDOM_PIECES: Final = 22
"""The same where it comes in pieces."""
_PIECE: Final = 4
"""Characters of a piece that counts: v2 and x64 are everywhere."""
_DIGITS: Final = 60
"""Digits that an address may have in all: letters can be written as numbers."""
_TELLING: Final = 8
"""Characters of a piece that does not stand in a public text by chance."""
_WORD: Final = 28
"""Letters of the longest word that is taken for a word."""
_READABLE: Final = 2.7
_READABLE_AT_LENGTH: Final = 3.2
_LONG: Final = 40
"""Letters that a part of a readable name has on average: parseHttpUrl has four, random text about two. The longer it
is, the surer that is."""

_ACRONYM: Final = 5
"""Capitals in a row that are read as one part; more of them, within a name, are letters."""

_KEY_FORMS: Final = (
    r"(?i)\b(?:(?:AKIA|ASIA)[A-Z0-9]{16}"  # Amazon's access keys
    r"|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|sk-[\w-]{16,}|AIza[\w-]{30,}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"  # a UUID
)
"""Keys that say what they are, as their makers document them."""

_SECRET: Final = 6
"""Letters of a secret that stands nowhere by chance."""
_SHOWN: Final = 60
_DECODED: Final = 8
"""How often percent-encoding is undone."""

_SEPARATORS: Final = re.compile(r"[/?&=;]+")
_PIECES: Final = re.compile(r"[^A-Za-z0-9]+")
_PARTS_OF_A_NAME: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_PARAMETERS: Final = re.compile(r"[&;]")
_DIGIT: Final = re.compile(r"[0-9]+")


def suspicion(text: str, seen: SeenText) -> str | None:
    """Return why a person should decide about fetching the URL `text`; None where nobody needs to.

    What is no URL at all is no matter of this: it will be refused.
    """
    try:
        url = parse(text)
    except UrlError:
        return None
    if _was_typed(url, seen):
        return None
    host = "" if seen.is_private(url.host) else url.host
    carried = _decoded(url.target)
    if carried != unquote_plus(carried):
        return f"the address is percent-encoded more than {_DECODED} times, which hides what would leave this machine"
    if reason := _much(carried, seen):
        return reason
    if seen.secrets and _tells_a_secret(host, url.target, seen.secrets):
        return "the address carries what was typed as a secret, which would leave this machine"
    return _verbatim(host, url.target, seen) or _unreadable(host, carried, seen) or filled_in(text, seen)


def _was_typed(url: Url, seen: SeenText) -> bool:
    for each in seen.typed_urls():
        with suppress(UrlError):
            if parse(each) == url:
                return True
    return False


def _tells_a_secret(host: str, target: str, secrets: Iterable[str]) -> bool:
    forms = list(_forms(host, target))
    whole = {comparable(piece) for form in forms for piece in _PIECES.split(form)}
    texts = [comparable(form) for form in forms]
    return any(each in whole or (len(each) >= _SECRET and any(each in text for text in texts)) for each in secrets)


def _decoded(target: str) -> str:
    for _ in range(_DECODED):
        again = unquote_plus(target)
        if again == target:
            break
        target = again
    return target


def _much(carried: str, seen: SeenText) -> str | None:
    longest = max(map(len, _SEPARATORS.split(carried)), default=0)
    if len(carried) > MOST or longest > LONGEST:
        many = f"{len(carried)} characters" if len(carried) > MOST else f"a part of {longest} characters"
        return f"the path and query of the address carry {many}, which would leave this machine"
    if seen.forgot and len(carried) > VERBATIM:
        return "more was read in this session than an address can be compared with"
    return None


def _verbatim(host: str, target: str, seen: SeenText) -> str | None:
    """Look for a private text's words, in every form that is easily written."""
    forms = [form for each in _forms(host, target) if len(form := comparable(each)) >= VERBATIM]
    blocks = _cut(forms, _BLOCK)
    runs = _cut(forms, VERBATIM)
    for text in seen.compared():
        if found := _common(blocks, runs, text):
            return f'the address carries text from the root, "{found}", which would leave this machine'
    return None


def _forms(host: str, target: str) -> Iterator[str]:
    """Yield what may have been written into an address: as it stands, put together again, and decoded."""
    path, _, query = target.partition("?")
    parameters = [each.partition("=") for each in _PARAMETERS.split(query)]
    names, values = (_decoded("".join(each[place] for each in parameters)) for place in (0, 2))
    path, carried = _decoded(path), _decoded(target)
    labels = "".join(host.split(".")[:-2])
    wholes = (carried, values, names, f"{labels}{path}{values}", _DIGIT.sub("", carried))
    for plain in dict.fromkeys(wholes):
        yield plain
        yield plain[::-1]
        yield codecs.encode(plain, "rot13")
    yield host
    tokens = (_decoded(each) for each in _SEPARATORS.split(target))
    for token in dict.fromkeys((*tokens, *_SEPARATORS.split(carried), path, values)):
        for decoded in filter(None, _decodings(token)):
            yield decoded
            yield decoded[::-1]


def _decodings(token: str) -> Iterator[str]:
    """Yield what a token says if it is in base 64, 32, 16 (also behind one digit too many) or 85."""
    plain = token.replace(" ", "+")  # "+" has become a blank when the query was decoded
    letters = re.sub(r"[^A-Za-z0-9+/]", "", plain.replace("-", "+").replace("_", "/"))
    digits = re.sub(r"[^0-9a-f]", "", token.lower())
    yield _text(base64.b64decode, _groups(letters, 4) + _padding(letters, 4))
    yield _text(base64.b32decode, _groups(re.sub(r"[^A-Z2-7]", "", token.upper()), 8))
    yield _text(bytes.fromhex, _groups(digits, 2))
    yield _text(bytes.fromhex, _groups(digits[1:], 2))
    yield _text(base64.b85decode, plain)
    yield _text(base64.a85decode, plain)


def _groups(letters: str, size: int) -> str:
    """Return the whole groups of `size` letters."""
    return letters[: len(letters) - len(letters) % size]


def _padding(letters: str, size: int) -> str:
    """Return the last letters of a base64 text whose padding was left out, padded."""
    rest = letters[len(_groups(letters, size)) :]
    return rest + "=" * (size - len(rest)) if len(rest) > 1 else ""


def _text(decode: Callable[[str], bytes], letters: str) -> str:
    if len(letters) < VERBATIM:
        return ""
    try:
        return decode(letters).decode("utf-8", "ignore")
    except (ValueError, binascii.Error):
        return ""


def _cut(forms: Iterable[str], size: int) -> frozenset[str]:
    """Return every run of `size` characters."""
    return frozenset(form[at : at + size] for form in forms for at in range(len(form) - size + 1))


def _common(blocks: frozenset[str], runs: frozenset[str], text: str) -> str:
    """Return one of `runs` that stands in `text`; "" where there is none.

    In time that grows with the text alone, whatever it says: a run in it holds a whole block of it.
    """
    places = [at for at in range(0, len(text), _BLOCK) if text[at : at + _BLOCK] in blocks]
    for place in places[:_PLACES]:
        for at in range(max(0, place - _BLOCK), place + 1):
            if text[at : at + VERBATIM] in runs:
                return text[at : at + VERBATIM]
    return text[places[0] : places[0] + _BLOCK] if len(places) > _PLACES else ""


def _unreadable(host: str, carried: str, seen: SeenText) -> str | None:
    """Look for strings without words: keys, digests, what is encrypted or encoded."""
    if (key := re.search(_KEY_FORMS, carried)) and not seen.is_public(key[0]):
        return f'the address carries "{key[0][:_SHOWN]}", which has the form of a key and would leave this machine'
    pieces = _PIECES.split(f"{host}/{carried}")
    random = [piece for piece in pieces if _is_random(piece) and not _is_known(piece, seen)]
    if found := next((piece for piece in random if len(piece) >= _RANDOM), ""):
        return f'the address carries "{found[:_SHOWN]}", which reads like a key and would leave this machine'
    if found := next((piece for piece in pieces if _is_no_word(piece) and not _is_known(piece, seen)), ""):
        return f'the address carries "{found[:_SHOWN]}", which is no word and would leave this machine'
    random = [piece for piece in random if len(piece) >= _PIECE]
    if sum(map(len, random)) >= _RANDOM_PIECES:
        return f'the address carries "{"-".join(random)[:_SHOWN]}", which reads like a key and would leave this machine'
    if (digits := sum(map(str.isdigit, carried))) >= _DIGITS:
        return f"the address carries {digits} digits, which may be text in numbers and would leave this machine"
    return None


def _is_known(piece: str, seen: SeenText) -> bool:
    return len(piece) >= _TELLING and seen.is_public(piece)


def _is_random(piece: str) -> bool:
    words = _PARTS_OF_A_NAME.findall(piece)
    if len(words) <= 1:
        return piece.isdigit() and len(piece) >= _RANDOM
    parts = sum(len(word) // 2 if word.isupper() and len(word) > _ACRONYM else 1 for word in words)
    return len(piece) / parts < (_READABLE if len(piece) < _LONG else _READABLE_AT_LENGTH)


def _is_no_word(piece: str) -> bool:
    return any(len(word) >= _WORD for word in _PARTS_OF_A_NAME.findall(piece))
