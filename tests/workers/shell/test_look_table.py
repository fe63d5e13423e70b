"""Which lines only look, as far as their text says so."""

from tests.each_row import each_row
from workers.shell.look_table import look_of
from workers.shell.shell_line import simple_commands_of

LOOKS = (
    "git status",
    "git status --short --branch",
    "git --no-pager -C sub log --oneline -n 5 -- 'a b'",
    "git branch -vv",
    "git branch --list 'x*'",
    "git config --get user.name",
    "git stash show 'stash@{0}'; git show HEAD@{1}:a.txt",
    "cd d && git diff --stat HEAD~1 | head -n 3",
    "ls -la src 2>/dev/null || true",
    "cat a.txt b.txt; wc -l *.py\necho done",
    "find . -name '*.py' -newer a.txt | sort | uniq -c",
    "grep -rn foo src/*.py | cut -d: -f1",
    "sed -n '1,20p' a.txt",
    "test -f x && echo 'a $HOME' >/dev/null 2>&1",
)
REHEARSED = (
    "git commit -m x",
    "git branch new",
    "git tag v1",
    "git stash",
    "git config user.name x",
    "git -c core.pager=x log",
    "git diff --output=x",
    "git diff --no-index a b",
    "git remote add x y",
    "cat a.txt > b.txt",
    "cat < a.txt",
    "cat $FILE",
    "cat $(ls)",
    "cat {a,b}.txt",
    "cat ~/x",
    "cat [ab].txt",
    "echo x & ",
    "LC_ALL=C ls",
    "ls | xargs cat",
    "find . -name x -delete",
    "find . -exec cat {} +",
    "grep -rDread x .",
    "grep --devices=read x .",
    "rg --pre cat x",
    "sed -i s/a/b/ a.txt",
    "sed -n 'w out' a.txt",
    "wc --files0-from=names",
    "sha256sum -c sums",
    "file -s pipe",
    "python3 -c 1",
    "./ls",
    "/usr/bin/git status",
    "l\\s",
    "sudo ls",
    "test -v 'a[$(cat ff >&2)]'",
    "[ -v 'a[0]' ]",
    "printf -v 'a[0]' x",
    "cd nowhere; cd d; cat ff",
    "cd d* && cat ff",
    "git -C a -C b log",
    "diff ff d",
    "if true; then ls; fi",
    "",
)


@each_row(("line", "looks"), [*((each, True) for each in LOOKS), *((each, False) for each in REHEARSED)])
def test_a_line_looks_or_is_rehearsed(line: str, looks: bool) -> None:
    commands = simple_commands_of(line)
    assert (commands is not None and look_of(commands) is not None) is looks


def test_each_word_that_may_name_a_file_is_told_with_where_it_is_looked_up() -> None:
    commands = simple_commands_of("cd ../e && git log --x=one -aftwo three 'f?ur' fi*e")
    look = look_of(commands or [])
    assert look is not None
    assert {"one", "two", "three", "../e", "f[?]ur", "fi*e"} < set(look.names)
    assert look.directories == (".", "./../e")
