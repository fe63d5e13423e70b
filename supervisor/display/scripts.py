"""Scripts of letters, by the names that Unicode gives them: words that look like other words. Pure.

Rule: a word is a run of letters. One that mixes scripts is told, and so is one of another script whose letters all look
like Latin ones. Those of Japanese, Korean and Chinese are written beside each other and Latin. Letters that are
variants of a to z, such as those of formulas and of full width, are a script of their own. A text that looks like its
composed form (NFC) and is another one is told, too.
"""

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_SCRIPT: Final = re.compile(
    r"(.+?)(?=-| (?:LETTER|SMALL|CAPITAL|SYLLAB|IDEOGRAPH|VOWEL|CONSONANT|SIGN|INDEPENDENT|FINAL|DIGIT)\b|$)"
)
_TOGETHER: Final = frozenset({"CJK", "CJK UNIFIED", "CJK COMPATIBILITY", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"})
_LETTERS: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Nd"})
_NO_DIGITS: Final = str.maketrans("", "", "0123456789")
_EAST_ASIAN: Final = "East Asian"
_LATIN: Final = "Latin"
_IPA: Final = frozenset({0x131, *range(0x250, 0x2B0), *range(0x1D00, 0x1DC0)})
_PLAIN: Final = 0x2B0
"""Below this are Latin letters, but for those of phonetics and the dotless i."""
_LOOKS_LATIN: Final = frozenset(
    "асеорхуіјѕһԁԛԝѵӏмтквнгпАВЕЅІЈКМНОРСТХУԌԚԜѴӀ"  # Cyrillic
    "αοινυρκτγωηχΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ"  # Greek
    "օոսցհքԼՍՏՕյզ"  # Armenian
    "ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎵᎷᎻᏀᏂᏃᏎᏏᏒᏔᏕᏙᏚᏞᏟᏢᏤᏦᏧᏩᏮᏳᏴꭰꮃꮪꮮꮯꮲꮶ"  # Cherokee
    "ⲟⲣⲥⲭⲓⲕⲙⲛⲁⲃⲉ"  # Coptic
)
"""Letters that a reader takes for Latin ones; from Unicode's confusables.txt (UTS 39), those of the usual fonts."""


def disguised(text: str) -> str:
    """Return which scripts a word of a text mixes, or pretends, or that it is not composed; "" where none does."""
    if text.isascii():
        return ""
    for found in _WORD.finditer(text):
        word = found[0].translate(_NO_DIGITS)
        if word.isascii():
            continue
        letters = {_script(char) for char in word if unicodedata.category(char) in _LETTERS} - {_EAST_ASIAN}
        scripts = sorted(letters, key=lambda script: (script != _LATIN, script))
        if len(scripts) > 1:
            return f"mixes {', '.join(scripts[:-1])} and {scripts[-1]}"
        if (
            any(map(str.isalpha, word))
            and scripts
            and scripts[0] != _LATIN
            and (_LOOKS_LATIN.issuperset(word) or scripts[0].islower())
        ):
            return f"all {scripts[0]}"
    return "" if unicodedata.is_normalized("NFC", text) else "letters in parts"


def _script(char: str) -> str:
    code = ord(char)
    if char.isascii() or (code < _PLAIN and code not in _IPA):
        return _LATIN
    plain = unicodedata.normalize("NFKC", char)
    if plain.isascii() and plain != char:
        return "variant letters"
    if code in _IPA:
        return "phonetic letters"
    found = _SCRIPT.match(unicodedata.name(char, "UNNAMED"))
    script = found[1].removeprefix("EXTENDED ") if found else ""
    return _EAST_ASIAN if script in _TOGETHER else script.title()
