"""The projects that commands are proved on: of five languages, from registries by name, and made here.

Rule: a project is a row. What comes from a registry has its tests with it; which version that is, is the registry's.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

Language = Literal["Python", "Node", "Rust", "Go", "C"]
Origin = Literal["made", "pypi", "npm", "crates", "go"]


class Project(NamedTuple):
    """One project, and what is done with it."""

    name: str
    language: Language
    origin: Origin
    read: str
    """The file that is read and edited."""
    test: str
    install: str = ""
    build: str = ""
    files: Mapping[str, str] = MappingProxyType({})
    """What is made."""
    edit: tuple[str, str] = ("", "")
    """The text that is replaced, and by what; a remark is put before the first line where there is none."""
    package: str = ""
    """What the registry calls it, where that is no name of a directory."""


NEEDS: Final[Mapping[Language, tuple[str, ...]]] = MappingProxyType(
    {"Python": ("python3",), "Node": ("node", "npm"), "Rust": ("cargo", "cc"), "Go": ("go",), "C": ("make", "cc")}
)
"""The programs without which a project is left out."""

_PIP: Final = "python3 -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check"
_NPM: Final = "npm install --no-audit --no-fund --no-package-lock --ignore-scripts"


def _pypi(name: str, read: str, tests: str, needs: str = "") -> Project:
    install = f"{_PIP} pytest {needs} -e ."
    return Project(name, "Python", "pypi", read, f"python -m pytest -q {tests}", " ".join(install.split()))


def _npm(name: str, read: str, tests: str) -> Project:
    return Project(name, "Node", "npm", read, tests, _NPM)


def _crate(name: str) -> Project:
    return Project(name, "Rust", "crates", "src/lib.rs", "cargo test --offline", "cargo fetch", "cargo build --offline")


def _module(package: str, read: str) -> Project:
    name, test = package.rpartition("/")[2], "go test ./..."
    return Project(name, "Go", "go", read, test, "go mod download", "go build ./...", package=package)


_PYTHON: Final = {
    "calc.py": "def add(left, right):\n    return left - right\n",
    "test_calc.py": "import unittest\nfrom calc import add\n\n\nclass Adds(unittest.TestCase):\n"
    "    def test_two(self):\n        self.assertEqual(add(1, 2), 3)\n",
    ".gitignore": ".venv/\n__pycache__/\n",
}
_PACKAGE: Final = {
    "pyproject.toml": '[project]\nname = "lengths"\nversion = "1"\n',
    "src/lengths/__init__.py": "from lengths.unit import metres\n",
    "src/lengths/unit.py": "def metres(feet):\n    return feet * 0.3\n",
    "tests/__init__.py": "",
    "tests/test_unit.py": "import unittest\nfrom lengths import metres\n\n\nclass Metres(unittest.TestCase):\n"
    "    def test_ten_feet(self):\n        self.assertAlmostEqual(metres(10), 3.048)\n",
    ".gitignore": ".venv/\nbuild/\n*.pyc\n",
}
_CACHE: Final = {
    "count.py": "import json, pathlib, sqlite3\n\npathlib.Path('.cache').mkdir(exist_ok=True)\n"
    "base = sqlite3.connect('.cache/words.db')\nbase.execute('create table if not exists w (word unique, n)')\n\n\n"
    "def count(text):\n    found = {}\n    for word in text.split():\n        found[word] = found.get(word, 1) + 1\n"
    "    for item in found.items():\n        base.execute('insert or replace into w values (?, ?)', item)\n"
    "    base.commit()\n    return found\n\n\nif __name__ == '__main__':\n"
    "    assert count('a b a') == {'a': 2, 'b': 1}, json.dumps(count('a b a'))\n    print('3 words')\n",
    ".gitignore": ".cache/\n",
}
_SERVER: Final = {
    "served.py": "from http.server import BaseHTTPRequestHandler\n\n\nclass Echo(BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n        self.send_response(200)\n        self.end_headers()\n"
    "        self.wfile.write(self.path[2:].encode())\n",
    "test_served.py": "import threading, unittest, urllib.request\nfrom http.server import ThreadingHTTPServer\n"
    "from served import Echo\n\n\nclass Answers(unittest.TestCase):\n    def test_path(self):\n"
    "        with ThreadingHTTPServer(('localhost', 0), Echo) as server:\n"
    "            threading.Thread(target=server.serve_forever).start()\n"
    "            told = urllib.request.urlopen(f'http://localhost:{server.server_port}/word').read()\n"
    "            server.shutdown()\n        self.assertEqual(told, b'word')\n",
    ".gitignore": "__pycache__/\n",
}
_NODE: Final = {
    "package.json": '{"name": "sums", "version": "1.0.0", "scripts": {"test": "node --test"}}\n',
    "sum.js": "exports.sum = (numbers) => numbers.reduce((one, other) => one + other, 1);\n",
    "sum.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\n"
    "test('sums', () => assert.equal(require('./sum').sum([1, 2]), 3));\n",
    ".gitignore": "node_modules/\n",
}
_LOCAL: Final = {
    "package.json": '{"name": "app", "version": "1.0.0", "dependencies": {"words": "file:words"},\n'
    ' "scripts": {"build": "node build.js", "test": "node test.js"}}\n',
    "words/package.json": '{"name": "words", "version": "1.0.0", "main": "index.js"}\n',
    "words/index.js": "exports.upper = (text) => text.toLowerCase();\n",
    "build.js": "const fs = require('fs');\nfs.mkdirSync('dist', { recursive: true });\n"
    "fs.writeFileSync('dist/app.js', fs.readFileSync('app.js'));\n",
    "app.js": "const { upper } = require('words');\nmodule.exports = () => upper('hi');\n",
    "test.js": "if (require('./dist/app.js')() !== 'HI') throw new Error('not upper');\nconsole.log('1 passed');\n",
    ".gitignore": "node_modules/\ndist/\n",
}
_RUST: Final = {
    "Cargo.toml": '[package]\nname = "steps"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": "pub fn steps(n: u64) -> u64 {\n    n * 3\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n"
    "    fn doubles() {\n        assert_eq!(super::steps(2), 4);\n    }\n}\n",
    ".gitignore": "target/\n",
}
_WORKSPACE: Final = {
    "Cargo.toml": '[workspace]\nmembers = ["inner", "outer"]\nresolver = "2"\n',
    "inner/Cargo.toml": '[package]\nname = "inner"\nversion = "0.1.0"\nedition = "2021"\n',
    "inner/src/lib.rs": 'pub fn name() -> &\'static str {\n    "outer"\n}\n',
    "outer/Cargo.toml": '[package]\nname = "outer"\nversion = "0.1.0"\nedition = "2021"\n\n'
    '[dependencies]\ninner = { path = "../inner" }\n',
    "outer/src/main.rs": 'fn main() {\n    println!("{}", inner::name());\n}\n',
    "outer/tests/says.rs": '#[test]\nfn says() {\n    assert_eq!(inner::name(), "inner");\n}\n',
    ".gitignore": "target/\n",
}
_GO: Final = {
    "go.mod": "module example/area\n\ngo 1.19\n",
    "area.go": "package area\n\nfunc Square(side int) int { return side + side }\n",
    "area_test.go": 'package area\n\nimport "testing"\n\nfunc TestSquare(t *testing.T) {\n'
    '\tif Square(3) != 9 {\n\t\tt.Fatal("not 9")\n\t}\n}\n',
}
_GO_PROGRAM: Final = {
    "go.mod": "module example/hello\n\ngo 1.19\n",
    "main.go": 'package main\n\nimport (\n\t"fmt"\n\n\t"example/hello/words"\n)\n\n'
    "func main() { fmt.Println(words.Greeting()) }\n",
    "words/words.go": 'package words\n\nfunc Greeting() string { return "helo" }\n',
    "words/words_test.go": 'package words\n\nimport "testing"\n\nfunc TestGreeting(t *testing.T) {\n'
    '\tif Greeting() != "hello" {\n\t\tt.Fatal(Greeting())\n\t}\n}\n',
    ".gitignore": "hello\n",
}
_RUST_FETCH: Final = {
    "Cargo.toml": '[package]\nname = "figures"\nversion = "0.1.0"\nedition = "2018"\n\n[dependencies]\nitoa = "1"\n',
    "src/lib.rs": "pub fn text(n: u64) -> String {\n    itoa::Buffer::new().format(n + 1).to_string()\n}\n\n"
    '#[cfg(test)]\nmod tests {\n    #[test]\n    fn says() {\n        assert_eq!(super::text(7), "7");\n    }\n}\n',
    ".gitignore": "target/\n",
}
_GO_FETCH: Final = {
    "go.mod": "module example/names\n\ngo 1.19\n",
    "name.go": 'package names\n\nimport "github.com/google/uuid"\n\n'
    "func Length() int { return len(uuid.New().String()) - 1 }\n",
    "name_test.go": 'package names\n\nimport "testing"\n\nfunc TestLength(t *testing.T) {\n'
    "\tif Length() != 36 {\n\t\tt.Fatal(Length())\n\t}\n}\n",
}
_C: Final = {
    "Makefile": "CFLAGS = -O1 -Wall\nall: app\napp: main.o list.o\n\t$(CC) -o $@ $^\nmain.o list.o: list.h\n"
    "check: app\n\t./app\ninstall: app\n\tmkdir -p out/bin && cp app out/bin/\nclean:\n\trm -f app *.o\n",
    "list.h": "int total(const int *numbers, int count);\n",
    "list.c": '#include "list.h"\nint total(const int *numbers, int count) {\n    int sum = 0;\n'
    "    for (int at = 1; at < count; at++) sum += numbers[at];\n    return sum;\n}\n",
    "main.c": '#include <stdio.h>\n#include "list.h"\nint main(void) {\n    int numbers[] = {1, 2, 3};\n'
    '    printf("%d\\n", total(numbers, 3));\n    return total(numbers, 3) != 6;\n}\n',
    ".gitignore": "*.o\napp\nout/\n",
}
_LIBRARY: Final = {
    "Makefile": "B = build\n$(B)/libtext.a: text.c text.h\n\tmkdir -p $(B)\n\t$(CC) -c -o $(B)/text.o text.c\n"
    "\tar rcs $@ $(B)/text.o\n$(B)/test: test.c $(B)/libtext.a\n\t$(CC) -o $@ test.c -L$(B) -ltext\n"
    "check: $(B)/test\n\t$(B)/test\n",
    "text.h": "unsigned length(const char *text);\n",
    "text.c": '#include "text.h"\nunsigned length(const char *text) {\n    unsigned found = 1;\n'
    "    while (*text++) found++;\n    return found;\n}\n",
    "test.c": '#include <assert.h>\n#include <stdio.h>\n#include "text.h"\n'
    'int main(void) {\n    assert(length("four") == 4);\n    puts("1 passed");\n    return 0;\n}\n',
    ".gitignore": "build/\n",
}
_GENERATED: Final = {
    "Makefile": "all: app\ntable.h: table.sh\n\tsh table.sh > table.h\napp: app.c table.h\n\t$(CC) -o $@ app.c\n"
    "check: app\n\ttest `./app` = 285\n",
    "table.sh": "echo 'static const int squares[] = {'\nfor i in 0 1 2 3 4 5 6 7 8; do echo \"$((i * i)),\"; done\n"
    "echo '};'\n",
    "app.c": '#include <stdio.h>\n#include "table.h"\nint main(void) {\n    int sum = 0;\n'
    "    for (unsigned at = 0; at < sizeof squares / sizeof *squares; at++) sum += squares[at];\n"
    '    printf("%d\\n", sum);\n    return 0;\n}\n',
    ".gitignore": "app\ntable.h\n",
}

PROJECTS: Final = (
    Project(
        *("python-unittest", "Python", "made", "calc.py", "python3 -m unittest"),
        *("python3 -m venv --without-pip .venv", "python -c 'import calc'", _PYTHON),
        ("left - right", "left + right"),
    ),
    Project(
        *("python-package", "Python", "made", "src/lengths/unit.py", "PYTHONPATH=src python3 -m unittest"),
        *("python3 -m venv --without-pip .venv", "mkdir -p build && cp -r src build/", _PACKAGE),
        ("0.3", "0.3048"),
    ),
    Project(
        *("python-cache", "Python", "made", "count.py", "python3 count.py"),
        *("", "", _CACHE),
        ("found.get(word, 1)", "found.get(word, 0)"),
    ),
    Project(
        *("python-server", "Python", "made", "served.py", "python3 -m unittest"),
        *("", "", _SERVER),
        ("path[2:]", "path[1:]"),
    ),
    _pypi("pluggy", "src/pluggy/_hooks.py", "testing --ignore=testing/benchmark.py"),
    _pypi("iniconfig", "src/iniconfig/__init__.py", "testing"),
    _pypi("toolz", "toolz/itertoolz.py", "toolz/tests"),
    _pypi("more-itertools", "more_itertools/recipes.py", "tests/test_recipes.py"),
    _pypi("idna", "idna/core.py", "tests/test_idna.py tests/test_intranges.py"),
    _pypi("inflection", "inflection/__init__.py", "test_inflection.py"),
    _pypi("itsdangerous", "src/itsdangerous/signer.py", "tests", "freezegun"),
    Project(
        *("node-test", "Node", "made", "sum.js", "npm test"),
        *("npm install --offline --no-audit", "", _NODE),
        ("other, 1", "other, 0"),
    ),
    Project(
        *("node-local", "Node", "made", "words/index.js", "npm test"),
        *("npm install --offline --no-audit", "npm run build", _LOCAL),
        ("toLowerCase", "toUpperCase"),
    ),
    _npm("minimist", "index.js", "node_modules/.bin/tape 'test/**/*.js'"),
    _npm("concat-map", "index.js", "node_modules/.bin/tape 'test/**/*.js'"),
    _npm("defined", "index.js", "npx --no-install tape 'test/**/*.js'"),
    _npm("text-table", "index.js", "tape test/*.js"),
    _npm("wordwrap", "index.js", "node -e \"require('./')(20)('a b')\""),
    Project(
        *("rust-library", "Rust", "made", "src/lib.rs", "cargo test --offline"),
        *("cargo fetch --offline", "cargo build --offline", _RUST),
        ("n * 3", "n * 2"),
    ),
    Project(
        *("rust-workspace", "Rust", "made", "inner/src/lib.rs", "cargo test --offline"),
        *("", "cargo build --offline", _WORKSPACE),
        ('"outer"', '"inner"'),
    ),
    _crate("itoa"),
    _crate("fastrand"),
    Project(
        *("rust-fetch", "Rust", "crates", "src/lib.rs", "cargo test --offline"),
        *("cargo fetch --locked", "cargo build --offline", _RUST_FETCH),
        edit=("n + 1", "n"),
    ),
    Project(
        *("go-library", "Go", "made", "area.go", "go test ./..."),
        *("go mod download", "go build ./...", _GO),
        ("side + side", "side * side"),
    ),
    Project(
        *("go-program", "Go", "made", "words/words.go", "go test ./..."),
        *("go mod download", "go build -o hello .", _GO_PROGRAM),
        ("helo", "hello"),
    ),
    _module("github.com/google/uuid", "uuid.go"),
    Project(
        *("go-fetch", "Go", "go", "name.go", "go test ./..."),
        *("go mod download", "go build ./...", _GO_FETCH),
        edit=(" - 1", ""),
    ),
    Project(*("c-program", "C", "made", "list.c", "make check"), *("make install", "make", _C), ("at = 1", "at = 0")),
    Project(*("c-library", "C", "made", "text.c", "make check"), *("", "make", _LIBRARY), ("found = 1", "found = 0")),
    Project(*("c-generated", "C", "made", "table.sh", "make check"), *("", "make", _GENERATED), ("6 7 8;", "6 7 8 9;")),
)
