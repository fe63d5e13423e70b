"""Own words of package managers: what of an install's output a model may read and still have read nothing of strangers.

Rule: deny by default. A line is a package manager's own where it is one of these sentences, in which numbers and units
alone vary: a name may be a sentence, and any script of a package may print. The rest is counted, and left out. Pure.
"""

import json
import re
from typing import Final

_MANY: Final = r"\d{1,7}"
_TIME: Final = r"\d{1,7}(?:\.\d{1,3})?(?:ms|m|s)(?: \d{1,2}s)?"
_PACKAGES: Final = f"{_MANY} packages?"
_DONE: Final = f"(?:added|removed|changed|audited) {_PACKAGES}"
_BADLY: Final = "(?:low|moderate|high|critical)"
_SENTENCES: Final = (
    # npm and pnpm
    rf"(?:up to date|{_DONE})(?:, (?:and )?{_DONE})*(?: in {_TIME})?",
    rf"{_PACKAGES} (?:is|are) looking for funding|run `npm (?:fund|audit)` for details\.?|Already up to date",
    rf"found {_MANY} vulnerabilities|{_MANY} {_BADLY} severity vulnerabilit(?:y|ies)",
    rf"{_MANY} vulnerabilities \({_MANY} {_BADLY}(?:, {_MANY} {_BADLY})*\)",
    rf"Packages: [+-]{_MANY}(?: [+-]{_MANY})?|Done in {_TIME}",
    # yarn and bun
    r"\[\d/\d\] (?:Resolving|Fetching|Linking) (?:packages|dependencies)\.\.\.|success Saved lockfile\.",
    rf"{_PACKAGES} installed \[{_TIME}\]",
    # uv and poetry
    rf"(?:Resolved|Prepared|Installed|Uninstalled|Audited) {_PACKAGES} in {_TIME}",
    "Writing lock file",
    # bundler and composer
    r"Resolving dependencies\.{1,9}",
    rf"Bundle complete! {_MANY} Gemfile dependenc(?:y|ies), {_MANY} gems? now installed\.",
    r"Installing dependencies from lock file(?: \(including require-dev\))?|Generating (?:optimized )?autoload files",
    rf"(?:Package|Lock file) operations: {_MANY} installs?, {_MANY} updates?, {_MANY} removals?",
    r"Verifying lock file contents can be installed on current platform\.|Nothing to install, update or remove",
    r"Loading composer repositories with package information|Updating dependencies",
    # cargo
    rf"Updating crates\.io index|Downloaded {_MANY} crates? \([\d.]{{1,8}} ?[KM]i?B\) in {_TIME}",
)
"""Sources: what each program prints."""
_OWN: Final = "(?a)" + "|".join(f"(?:{each})" for each in _SENTENCES)
_LINES: Final = 16
"""Of each output: numbers, too, say something where there are many."""
_OUTPUTS: Final = ("stdout", "stderr")


def own_words(result: str) -> tuple[str, int]:
    """Return the result of a command with the own words of package managers alone, and how many lines are left out.

    `result` is JSON, as workers say it.
    """
    told = json.loads(result)
    told = told if isinstance(told, dict) else {}
    left_out = 0
    for output in _OUTPUTS:
        lines = [each for each in str(told.get(output, "")).splitlines() if each.strip()]
        own = list(dict.fromkeys(each.strip() for each in lines if re.fullmatch(_OWN, each.strip())))[:_LINES]
        told[output] = "".join(f"{each}\n" for each in own)
        left_out += len(lines) - len(own)
    kept = {key: told[key] for key in (*_OUTPUTS, "exit_code") if key in told}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")), left_out
