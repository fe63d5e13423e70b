"""Variables for commands: what the operator may name, and what goes in of the person's."""

import pytest

from supervisor.categories.command_environment import absolute_variables, check_variables, language_of
from supervisor.errors import ConfigError
from tests.each_row import each_row

ROOT = "/srv/root"

ALLOWED = [
    ("DJANGO_SETTINGS_MODULE", "site.settings"),
    ("CI", ""),
    ("DATABASE_URL", "sqlite:///x.db"),
    ("CFLAGS", "-O2 -I/usr/include/x"),
    ("PAGER", "cat"),
    ("PYTHONPATH", "src"),
    ("PYTHONPATH", f"src:./lib:{ROOT}/more"),
    ("LD_PRELOAD", "./build/hook.so"),
    ("LD_LIBRARY_PATH", f"{ROOT}/lib"),
    ("LD_PRELOAD", "a.so b.so:./c.so"),
    ("MAKEFILES", "a.mk b.mk"),
    ("GIT_INDEX_FILE", ".git/other"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NODE_OPTIONS", "--max-old-space-size=4096 --no-warnings"),
    ("NODE_OPTIONS", "--max_old_space_size=4096 --require ./hook.js"),
    ("JAVA_TOOL_OPTIONS", "-Xmx2g -Dfile.encoding=UTF-8"),
    ("MAVEN_OPTS", "-Xmx1g"),
    ("GOFLAGS", "-mod=vendor"),
    ("MAKEFLAGS", "-j4"),
    ("PYTHONWARNINGS", "ignore"),
    ("PYTEST_ADDOPTS", "-q --tb=short"),
    ("NODE_PATH", "lib/.."),
    ("NODE_OPTIONS", "--require ./hook.js"),
    ("NODE_OPTIONS", f"--import={ROOT}/hook.mjs"),
    ("JAVA_TOOL_OPTIONS", "-javaagent:./agent.jar"),
    ("RUBYOPT", "-r./x.rb"),
    ("GIT_AUTHOR_DATE", "2020-01-01"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("PYTHONUTF8", "1"),
    ("lower_case", "yes"),
]

REFUSED = [
    ("A\0B", "x", "NUL"),
    ("A", "x\0y", "NUL"),
    ("", "x", "name"),
    ("A B", "x", "name"),
    ("A=B", "x", "name"),
    ("1A", "x", "name"),
    ("BASH_FUNC_x%%", "() { :; }", "name"),
    ("É", "x", "name"),
    ("A", "x" * 2**17, "longer"),
    *((name, "/x", "made for each command") for name in ("PATH", "HOME", "TMPDIR", "SHELL", "IFS", "PS4")),
    *(
        (name, value, "load code")
        for name, value in (
            *((name, "/usr/lib/x.so") for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_BIND_NOW")),
            *((name, "/home/x") for name in ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "NODE_PATH", "PERL5LIB")),
            *((name, "/home/x") for name in ("RUBYLIB", "BASH_ENV", "ENV", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR")),
            *((name, "/home/x") for name in ("GIT_CONFIG_GLOBAL", "CLASSPATH", "MAKEFILES", "OPENSSL_CONF", "PERLLIB")),
            ("PYTHONPATH", ""),
            ("PYTHONPATH", "src:"),
            ("PYTHONPATH", "src::lib"),
            ("PYTHONPATH", "../x"),
            ("PYTHONPATH", "src/../../x"),
            ("PYTHONPATH", "~/x"),
            ("PYTHONPATH", "$HOME/x"),
            ("PYTHONPATH", f"{ROOT}/../x"),
            ("PYTHONPATH", f"{ROOT}2"),
            ("PYTHONPATH", f"{ROOT}/a:/b"),
            ("PYTHONPATH", "src;/b"),
            ("XDG_CONFIG_HOME", "/home/x"),
            ("LD_PRELOAD", "a.so /b.so"),
            ("LD_PRELOAD", "a.so:./b.so\t/c.so"),
            ("LD_PRELOAD", " a.so"),
            ("MAKEFILES", "a.mk /b.mk"),
            ("GIT_INDEX_FILE", "/home/x"),
            ("GIT_SSL_CAINFO", "/home/x"),
            ("GRADLE_USER_HOME", "/home/x"),
        )
    ),
    *(
        (name, value, "load or run")
        for name, value in (
            ("NODE_OPTIONS", "--max-old-space-size=4096 --require x"),
            ("NODE_OPTIONS", "--max-old-space-size=x"),
            ("NODE_OPTIONS", ""),
            ("GOFLAGS", "-mod=vendor -toolexec=/x"),
            ("MAVEN_OPTS", "-Xmx1g -javaagent:/x.jar"),
            ("MAVEN_OPTS", "-Xbootclasspath/a:/x.jar"),
            ("RUSTC_WRAPPER", "ignore"),
            ("PYTHONWARNINGS", "ignore::evil.Warning"),
            ("PYTEST_PLUGINS", "evil"),
            ("PYTEST_ADDOPTS", "-q -p evil"),
            ("GIT_NAMESPACE", "x"),
            ("LESSOPEN", "|x"),
            ("NODE_OPTIONS", "--require /tmp/x.js"),
            ("NODE_OPTIONS", "--require x"),
            ("NODE_OPTIONS", "--inspect"),
            ("NODE_OPTIONS", "--import data:text/javascript,x"),
            ("NODE_OPTIONS", "--require ./a.js --require ../b.js"),
            ("NODE_OPTIONS", "--require=./../x.js"),
            ("JAVA_TOOL_OPTIONS", "-javaagent:/x.jar"),
            ("_JAVA_OPTIONS", "-Dx=y"),
            ("JDK_JAVA_OPTIONS", "@/x"),
            ("RUBYOPT", "-rx"),
            ("RUBYOPT", "-rx -r./y"),
            ("PERL5OPT", "-Mx"),
            *((name, "sh -c x") for name in ("GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_PAGER", "GIT_EXTERNAL_DIFF")),
            *(
                (name, "x")
                for name in ("GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0")
            ),
            *((name, "x") for name in ("GOFLAGS", "RUSTC_WRAPPER", "MAKEFLAGS", "PYTHONBREAKPOINT", "LUA_INIT")),
        )
    ),
]


@each_row(("name", "value"), ALLOWED)
def test_a_variable_is_given(name: str, value: str) -> None:
    check_variables({name: value}, "here", ROOT)
    check_variables({name: value}, "here")


@each_row(("name", "value", "words"), REFUSED)
def test_a_variable_is_refused_with_the_reason(name: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"^here: the variable .*{words}"):
        check_variables({"GOOD": "x", name: value}, "here", ROOT)


def test_paths_are_those_of_the_root() -> None:
    given = {"PYTHONPATH": "src:./lib", "LD_PRELOAD": "/srv/root/x.so", "GREETING": "src:lib"}
    expected = {"PYTHONPATH": f"{ROOT}/src:{ROOT}/lib", "LD_PRELOAD": f"{ROOT}/x.so", "GREETING": "src:lib"}
    assert absolute_variables(given, ROOT) == expected


LANGUAGES = [
    ({"LANG": "de_DE.UTF-8", "TZ": "Europe/Berlin"}, {"LANG": "de_DE.UTF-8", "TZ": "Europe/Berlin"}),
    ({"LANG": "C", "LC_ALL": "POSIX", "TZ": ":UTC"}, {"TZ": "UTC"}),
    ({"LC_ALL": "en_GB.utf8", "LC_CTYPE": "C.UTF-8", "HOME": "/x"}, {"LC_ALL": "en_GB.utf8", "LC_CTYPE": "C.UTF-8"}),
    ({"LANG": "../x.UTF-8", "TZ": "/etc/shadow"}, {}),
    ({"LANG": "de.UTF-8\nX=1", "TZ": "../../x"}, {}),
    ({"TZ": "<+03>-3"}, {"TZ": "<+03>-3"}),
]


@each_row(("person", "expected"), LANGUAGES)
def test_the_persons_language_goes_in(person: dict[str, str], expected: dict[str, str]) -> None:
    assert language_of(person) == expected
