"""Rules that instructions state: read where a line says nothing else, and nowhere else."""

from typing import Final

from supervisor.rules.rule import Rule
from supervisor.rules.stated_rules import MOST, rule_of, stated_rules
from tests.each_row import each_row
from tests.supervisor.rules.honest_lines import HONEST


def both(*patterns: str) -> Rule:
    return Rule("deny", writes=patterns, deletes=patterns)


def kept(*patterns: str) -> Rule:
    return Rule("deny", deletes=patterns)


STATED: Final = {
    "Never change migrations/": both("migrations/"),
    "never change migrations/.": both("migrations/"),
    "- **Never** modify files in `vendor/`.": both("vendor/"),
    "* Do not edit `src/generated`": both("src/generated", "src/generated/**"),
    "1. Don't touch package-lock.json!": both("**/package-lock.json"),
    "Don\u2019t touch `.env`": both("**/.env"),
    "You must not edit or delete `db/schema.sql`.": both("db/schema.sql"),
    "You may never overwrite ./docs/api.md": both("docs/api.md"),
    "Please do not change the `migrations` directory.": both("migrations/"),
    "Do not modify `a/b.py` or `c/d.py`": both("a/b.py", "c/d.py"),
    "Do not modify a/b.py, c/d.py and e/": both("a/b.py", "c/d.py", "e/"),
    "do not delete": kept("**"),
    "Never delete files.": kept("**"),
    "Do not remove anything": kept("**"),
    "Never delete anything in `data/`.": kept("data/"),
    "Never remove *.csv": kept("**/*.csv"),
    "`legacy/` is read-only.": both("legacy/"),
    "The `fixtures` folder is off-limits.": both("fixtures/"),
    "Files in tests/golden/ must not be changed.": both("tests/golden/"),
    "- [ ] `CHANGELOG.md` must never be deleted": kept("**/CHANGELOG.md"),
}


@each_row(("line", "rule"), STATED.items(), ids=STATED)
def test_a_line_states_a_rule(line: str, rule: Rule) -> None:
    assert rule_of(line) == rule


def test_no_honest_line_states_one() -> None:
    assert len(HONEST) >= 500
    assert {line: rule for line in HONEST if (rule := rule_of(line)) is not None} == {}


def test_a_nested_file_speaks_of_its_own_directory() -> None:
    said = "Never change `gen/`.\nNever delete files.\nDo not edit x.py"
    found = stated_rules({"src/AGENTS.md": said})
    assert [each.rule for each in found] == [both("src/gen/"), kept("src/**"), both("src/**/x.py")]


def test_code_quotes_and_headings_state_nothing_and_each_rule_is_offered_once() -> None:
    rule = "Never change a/"
    said = f"```\n{rule}\n```\n> {rule}\n# {rule}\n    {rule}\n| {rule} |\n"
    assert stated_rules({"AGENTS.md": said}) == []
    said = f"{rule}\n{rule}.\n" + "".join(f"Never change d{number}/\n" for number in range(50))
    found = stated_rules({"/home/AGENTS.md": said})
    assert (found[0].line, found[1].rule, len(found)) == (rule, both("d0/"), MOST)
