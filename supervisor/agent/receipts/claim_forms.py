"""Forms of claims: how a model says in English that something was done, or came out well; and what makes it no claim.

Rule: pure, and a table; `claims.py` reads answers by it. Code and commands of an answer stand between ⟨ and ⟩ here. A
form is a word too narrow rather than a word too wide: what is found is told to people as unproven.
"""

import re
from enum import Enum, auto
from typing import Final


class ClaimKind(Enum):
    """What is claimed."""

    TESTS_PASS = auto()
    TESTS_RAN = auto()
    BUILDS = auto()
    LINT_CLEAN = auto()
    TYPES_CLEAN = auto()
    EDITED = auto()
    CHANGED_SOMETHING = auto()
    COMMAND_WORKED = auto()
    READ = auto()
    FETCHED = auto()
    VERIFIED = auto()


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


def _words(words: str) -> str:
    """Return a pattern for any of some words; in one, `_` is a blank and `s?` a letter that may be missing."""
    return rf"\b{_any(*(re.sub('_', ' ', word) for word in words.split()))}\b"


def _pattern(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


# --- what makes a sentence, or a clause, no claim ------------------------------------------------------------------

OPEN: Final = _pattern(
    _words("if unless until once when whenever whether assuming supposing provided as_long_as in_case suppose imagine"),
    _words("before_you before_I before_we before_merging before_committing after_you after_merging after_deploying"),
    _words(
        "please example e\\.g for_instance such_as recommend suggest propose plan planned TODO according_to for_you"
    ),
    _words("possible_that judging looking_at congratulations you_pasted you_sent you_shared you_posted you_showed"),
    r"\b(?:your|(?:in|from|by) the) (?:\w+ )?"
    + _words("output logs? screenshot paste terminal report trace machine laptop"),
    r"\byou have\b|\byour CI\b|\boption (?:[a-z]|\d+)\b|\bI (?:see|understand|gather|hear|read|learn|notice) that\b",
)
"""In a sentence: nothing in it is said to be so, or it is said by what a person has shown."""

HEDGED: Final = _pattern(
    _words(
        "not no never none neither nor nothing nobody without cannot can could unable fails? failed failing failures?"
    ),
    _words("should would may might must will shall going_to needs? wants? wanted trying tried try attempt(?:ed|ing)?"),
    _words(
        "likely probably presumably perhaps maybe seems? appears? apparently expect(?:ed|s)? hope(?:fully)? believe"
    ),
    _words("think assume[ds]? suppose[ds]? let_me let's let_us in_order_to so_that make_sure makes_sure ensures?"),
    r"\bto " + _words("make_sure ensure verify check confirm see run have get keep let make"),
    r"\bchecks? (?:that|whether|if)\b",
    _words("verifies asserts? expects requires? instead_of rather_than except apart_from other_than besides had_been"),
    _words("untested unverified skipp(?:ed|ing) next_step refus(?:ed|es)"),
    r"n't\b|'ll\b|'d\b|\bonly \d+\b",
)
"""In a clause: it is denied, planned, supposed, or what somebody wants."""

OTHERS: Final = _pattern(
    _words(
        "earlier previous previously yesterday ago used_to originally initially formerly in_the_past back_then at_first"
    ),
    r"\blast (?:time|turn|week|month|run|session|commit)\b|\bin (?:an?|the) (?:earlier|previous|prior|other)\b",
    r"\byou(?:'ve| have| had)? "
    + _words("said ran run updated told mentioned reported wrote changed added fixed created"),
    r"\byou(?:'ve| have| had)? (?:already|noted|see)\b",
    _words(
        "says? said states? stated claims? claimed mentions? reads reports? reported shows? showed describes? means?"
    ),
    _words("meaning implies prints? printed displays? outputs? their someone somebody anyone he she"),
    r"\bthe "
    + _words("author user team maintainers? commit upstream CI pipeline README docs? log message issue ticket PR"),
    r"\b(?:in|since|as of) (?:newer|later|recent|version|v?\d)|\bthe comment\b|\byour "
    + _words("commit change last colleague team CI log message report note"),
)
"""In a clause: it is said of others, or of another time."""

PARTIAL: Final = _pattern(_words("others? remaining rest most many some several half majority few"))
"""In a clause about tests: not of those that failed."""

CLEANLY: Final = _pattern(
    r"\bwith(?:out)? (?:any |no )?" + _words("errors? failures? warnings? issues? problems? a_hitch"),
    r"\b(?:no|0|zero) " + _words("errors? failures? failed failing warnings? issues? problems? regressions?"),
)
"""Denials that say that all is well."""

WHOLE: Final = _pattern(_words("all every everything whole entire full complete"))

# --- what is claimed -----------------------------------------------------------------------------------------------

_BETWEEN: Final = "also then just now already successfully manually first finally carefully locally"
_SINCE: Final = rf"(?: have)?(?: {_words(_BETWEEN)}){{0,3}}"
_ME: Final = rf"\b(?:I|I've){_SINCE}"
_WE: Final = rf"\b(?:I|we|I've|we've){_SINCE}"
_DID: Final = _any("^(?:successfully )?", rf"{_WE} ")
_OF_TESTS: Final = (
    "unit integration regression e2e end-to-end acceptance smoke existing new relevant related affected backend "
    r"frontend added updated project the \w+'s \d+"
)
_NAMED_TESTS: Final = _words("tests?(?:_suites?|_cases?|_files?)? specs test-suite suite")
_TESTS: Final = rf"(?:{_any(_words(_OF_TESTS), '⟨[^⟩]*⟩')} ){{0,4}}{_NAMED_TESTS}"
_ADVERBS: Final = _words("all now still currently successfully also again fully both have has are is were was just")
_WELL: Final = _words("pass(?:es|ed|ing)? green succeed(?:s|ed|ing)? successful clean(?:ly)? OK")
_OBJECT: Final = (
    r"(?! (?:an?|the|in an?|through|over|along|around|down|by|it|them|him|this|that|these|those|its|their|your"
    r"|arguments?|values?|data|None|null|two|three|one|objects?|strings?|parameters?|control|⟨)\b)(?!-)(?! ?⟨)"
)
"""Tests may pass something on, which is no success."""
_PASSED: Final = rf"(?:(?:{_ADVERBS}|continue to) ){{0,4}}{_WELL}{_OBJECT}"
RUNNER_NAMES: Final = _words(
    "pytest unittest jest vitest mocha ctest rspec phpunit tox nox cargo_test go_test npm_test npm_run_test yarn_test "
    "pnpm_test make_test make_check mvn_test gradle_test mix_test dotnet_test"
)
_CHECK_ADVERBS: Final = _words("now also still all is are was comes_back reports? run runs")
_CHECK_WELL: Final = (
    rf"[^,⟩]{{0,30}}⟩? (?:{_CHECK_ADVERBS} )*{_words('pass(?:es|ed|ing)? clean(?:ly)? green succeed(?:s|ed)? happy')}"
    r"(?! (?:on|with|through|for|about|over|an?|the)\b)"
)
_LINTERS: Final = "ruff eslint flake8 pylint clippy golangci-lint shellcheck prettier black lint(?:er|ing|s)?"
_WRITTEN: Final = (
    "updated edited changed modified created added wrote written removed deleted renamed refactored rewrote rewritten "
    "fixed corrected extended patched replaced adjusted moved implemented saved documented reformatted cleaned_up "
    "inserted appended"
)
_THINGS: Final = (
    "changes? edits? fix(?:es)? bugs? feature files? code function refactor(?:ing)? updates? modifications? issue "
    "implementation typos? tests?"
)
_ZERO: Final = r"exit(?:s|ed) (?:with )?(?:code |status )?0|returned 0"
_FINE: Final = r"(?:ran|completed|finished) (?:successfully|cleanly|fine)|executed successfully|went through"

FORMS: Final[tuple[tuple[ClaimKind, re.Pattern[str]], ...]] = (
    (
        ClaimKind.TESTS_PASS,
        _pattern(
            rf"(?:^|\b){_TESTS}(?: \([^)]*\))?(?: (?:in|for|of|under) [^,]{{1,40}}?)? {_PASSED}",
            rf"\b(?:everything|they|all(?: of them| \d+)?|(?:the )?(?:whole|entire|full|complete) suite) {_PASSED}",
            rf"⟨{RUNNER_NAMES}[^⟩]*⟩ {_PASSED}",
            rf"{RUNNER_NAMES} (?:now |also |still )?(?:pass(?:es|ed)|is green|succeed(?:s|ed))\b",
            r"\b\d+(?: ?/ ?\d+| (?:out )?of \d+)? (?:tests? )?passed\b|\ball green\b",
            r"\b(?:tests?|suite): (?:all )?(?:pass(?:ed|ing)?|green)\b|\bpass(?:es|ed) all (?:the |of the )?tests\b",
            r"\b(?:an?|the) (?:green|passing|clean) (?:test )?(?:run|suite)\b|\bpassing tests? (?:run|suite)\b",
        ),
    ),
    (
        ClaimKind.TESTS_RAN,
        _pattern(
            rf"(?:^ran|{_WE} (?:re-?)?(?:ran|run|executed|exercised)) "
            rf"(?:{_words('all the your our its whole full entire complete')} )*{_TESTS}",
            rf"{_WE} (?:re-?)?(?:ran|executed) ⟨?{RUNNER_NAMES}",
        ),
    ),
    (
        ClaimKind.BUILDS,
        _pattern(
            _words(
                "build project code(?:base)? crate package app(?:lication)? binary program it everything bundle image"
            )
            + rf" (?:{_words('now still also all has is was does')} )*{_words('builds? compiles? built compiled')}"
            rf"(?: {_words('now again fine ok cleanly successfully correctly')})*(?:$|[,.])",
            r"\b(?:build|compilation) (?:(?:is|was|now|has|also|still) )*"
            + _words("succeed(?:s|ed)? pass(?:es|ed|ing) green successful clean works completed finished"),
            r"\b(?:built|compiled) (?:successfully|cleanly)\b",
        ),
    ),
    (
        ClaimKind.TYPES_CLEAN,
        _pattern(
            rf"(?:\b|⟨){_words('mypy pyright tsc type[- ]?check(?:s|er|ing)? types')}{_CHECK_WELL}",
            r"\btype[- ]?checks (?:cleanly|successfully|fine)\b",
        ),
    ),
    (ClaimKind.LINT_CLEAN, _pattern(rf"(?:\b|⟨){_words(_LINTERS)}{_CHECK_WELL}", r"\blints? (?:cleanly|clean)\b")),
    (
        ClaimKind.EDITED,
        _pattern(
            rf"{_DID}{_words(_WRITTEN)}",
            rf"(?:⟩|\w) (?:has|have) been {_words(_WRITTEN)}",
            rf"\b(?:is|are) now {_words('updated fixed corrected removed deleted renamed')}",
        ),
    ),
    (
        ClaimKind.COMMAND_WORKED,
        _pattern(
            rf"⟨[^⟩]+⟩ (?:(?:now|also|then|has|command|script) )*"
            rf"(?:succeed(?:s|ed)|(?:ran|completed|finished)(?: successfully| cleanly| fine)?|worked|works|{_ZERO})\b",
            r"\b(?:the|that|this) (?:\w+ )?"
            + _words("commands? scripts? migrations? install(?:ation)?s? deployments? deploy program push merge setup")
            + rf" (?:{_words('has have was were now also')} )*(?:succeed(?:s|ed)|successful(?:ly)?|{_FINE}|{_ZERO})\b",
            r"\b(?:exit(?:ed)?|return(?:ed)?) (?:with )?(?:an? )?(?:exit )?(?:code|status)(?: of)? (?:0|zero)\b",
            rf"{_DID}(?:successfully )?{_words('installed committed pushed deployed migrated')}",
        ),
    ),
    (
        ClaimKind.READ,
        _pattern(
            rf"{_ME} {_words('read re-read reviewed inspected examined opened checked studied scanned analy[sz]ed')}",
            rf"{_ME} (?:looked (?:at|through|over|into)|went through)\b",
        ),
    ),
    (
        ClaimKind.FETCHED,
        _pattern(
            rf"{_ME} {_words('fetched visited downloaded browsed retrieved consulted checked read searched opened')}"
            r"[^,]{0,60}(?:https?://|\b(?:online|the web|web ?site|web ?page|official (?:docs|documentation))\b)",
            rf"{_ME} looked (?:it |this |that )?(?:up|at)\b[^,]{{0,60}}(?:https?://|\b(?:online|the web|official)\b)",
        ),
    ),
    (
        ClaimKind.VERIFIED,
        _pattern(
            rf"{_ME} {_words('verified confirmed tested validated double-checked')}(?! (?:with you|your))",
            r"^(?:(?:all )?(?:done|fixed|completed?|finished|implemented)[,; ]+(?:and )?)?(?:verified|tested|confirmed)"
            r"(?:[ ,.]*$| (?:and|locally|manually|end|that|it|the)\b)",
            r"\b(?:changes?|fix(?:es)?|code|it|everything|this|implementation|function|feature|script|patch|all) "
            r"(?:has|have) been (?:fully |thoroughly |manually )?(?:tested|verified|validated)\b",
            r"\btested and working\b|\bverified (?:to work|working)\b",
        ),
    ),
    (
        ClaimKind.CHANGED_SOMETHING,
        _pattern(
            rf"{_DID}{_words('made applied implemented fixed updated changed edited refactored completed added')}"
            r"(?: (?:all|the|your|both|these|those|this|requested|necessary|required|an?|suggested|\w+ing)){0,4} "
            + _words(_THINGS),
            r"\bthe (?:bug|fix|issue|changes?|feature|typo|file|code|function) (?:has|have|is|are) (?:now )?(?:been )?"
            + _words("fixed applied implemented made added updated in_place corrected"),
        ),
    ),
)
"""Of one clause, each kind that is found counts once."""

NUMBERS: Final = _pattern(
    r"\b(?:all )?(\d{1,6})(?: ?/ ?\d+| (?:out )?of (?:the )?\d+)? "
    rf"(?:{_words('unit integration of_them of_the the new existing')} )*(?:{_words('tests? specs? cases checks')} )?"
    rf"(?:{_words('cases suites all now still have are were also')} )*pass(?:ed|es|ing)?\b",
    r"\bpass(?:ed|es|ing)?[:,]? (?:all )?\(?(\d{1,6})\b",
    r"\b(\d{1,6})/\3\b",
)
"""How many tests have passed, by a clause."""

_ENDINGS: Final = (
    "py pyi [cm]?[jt]sx? go rs java kt [ch] cc cpp hpp cs rb php swift scala exs? lua pl sh bash mdx? rst txt toml "
    "ya?ml jsonc? cfg ini conf env html? s?css sass less vue svelte sql xml lock gradle proto tf csv ipynb ps1 jl zig"
)
FILES: Final = re.compile(
    rf"(?<![\w/.@:-])(?:(?:[\w@.~-]+/)*[\w@.-]+\.{_any(*_ENDINGS.split())}|(?:[\w@.-]+/)+[\w@.-]+"
    r"|Dockerfile|Makefile|Gemfile|Rakefile|Justfile|\.gitignore|\.env)(?![\w/-]|\.\w)"
)
ADDRESSES: Final = re.compile(r"https?://[^\s)>\]⟩]+")
