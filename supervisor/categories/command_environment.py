"""The environment of commands: what the operator names in `[shell] env`, and what goes in of the person's.

Rule: nothing of a person's environment goes in but what is named here, and of files of certificates the certificates
alone. A variable by which programs load code is refused, unless all that it names lies in the root: there the model
could write the same into the programs themselves.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

from supervisor.errors import ConfigError
from workers.shell.shell_inputs import within

_LONGEST: Final = 2**17
"""Bytes of one variable (MAX_ARG_STRLEN of execve(2))."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOCALE: Final = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
_ZONE: Final = re.compile(r"(?![/:])(?!.*\.\.)[A-Za-z0-9_+/:,.<>-]{1,64}")

_OURS: Final = re.compile(r"PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|IFS|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|ZDOTDIR")
_PATHS: Final = (
    r"LD_[A-Z_]+|PYTHON(PATH|STARTUP|HOME|USERBASE|EXECUTABLE|PLATLIBDIR)|NODE_PATH|PERL5?LIB|RUBYLIB|GEM_(PATH|HOME)"
    r"|BASH_ENV|ENV|CLASSPATH|LUA_C?PATH(_5_\d)?|GCONV_PATH|OPENSSL_(CONF|ENGINES|MODULES)|MAKEFILES|GIT_(EXEC_PATH|"
    r"TEMPLATE_DIR|CONFIG(_GLOBAL|_SYSTEM)?|DIR|WORK_TREE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR)"
    r"|GIT_(INDEX_FILE|(PROXY_)?SSL_\w+)|GRADLE_USER_HOME|BUNDLE_(GEMFILE|PATH)|PIP_CONFIG_FILE|WGETRC|CURL_HOME|FPATH"
    r"|COVERAGE_PROCESS_START|NIX_LD(_LIBRARY_PATH)?|R_(PROFILE|ENVIRON|LIBS)(_USER|_SITE)?|JULIA_(LOAD|DEPOT)_PATH|ERL_LIBS|GTK_PATH|GTK_MODULES|QT_PLUGIN_PATH"
    r"|NODE_REPL_EXTERNAL_MODULE|PHPRC|PHP_INI_SCAN_DIR|TCLLIBPATH|XDG_[A-Z_]+|CARGO_HOME|RUSTUP_HOME|GUILE_LOAD_PATH"
)
"""Each names files from which programs load code or commands, or directories of such files."""
_OPTIONS: Final = (
    r"NODE_OPTIONS|RUBYOPT|PERL5(OPT|DB)|_?JAVA_(TOOL_)?OPTIONS|JDK_JAVA_OPTIONS|(MAVEN|GRADLE|SBT|ANT|JVM|KOTLIN)_OPTS"
    r"|GOFLAGS|MAKEFLAGS|GNUMAKEFLAGS|RUSTC|RUSTC_(WORKSPACE_)?WRAPPER|RUSTDOC|CARGO_BUILD_RUSTC(_[A-Z_]*WRAPPER)?"
    r"|CARGO_TARGET_\w+_(RUNNER|LINKER)|LUA_INIT(_5_\d)?|ERL_A?FLAGS|ERL_ZFLAGS|ELIXIR_ERL_OPTIONS|DOTNET_\w*HOOKS?"
    r"|DOTNET_\w*DEPS|(CORECLR|COR)_PROFILER(_PATH)?|DYLD_\w+|PYTHON(BREAKPOINT|WARNINGS|INSPECT|PYCACHEPREFIX)"
    r"|GLIBC_TUNABLES|HOSTALIASES|LOCPATH|NLSPATH|MALLOC_\w+|BUN_OPTIONS|DENO_\w*PRELOAD\w*|BASH_FUNC\w*"
    r"|GIT_(?!(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)\Z|TERMINAL_PROMPT|OPTIONAL_LOCKS|MERGE_AUTOEDIT|ADVICE|CEILING_)\w+"
    r"|PYTEST_(PLUGINS|ADDOPTS)|MAVEN_ARGS|LESS(OPEN|CLOSE)|TAR_OPTIONS|SSH_ASKPASS|(npm|NPM|yarn|YARN|pnpm|PNPM)_(config|CONFIG)_\w*(shell|SHELL|options|OPTIONS|git|GIT)\w*"
)
"""Each holds options or commands by which code is loaded or run."""
_HARMLESS: Final = (
    r"NODE_OPTIONS=--(max[-_](old|semi)[-_]space[-_]size=\d+|stack[-_]size=\d+|no-(warnings|deprecation)|enable-source-maps)"
    r"|(_?JAVA_(TOOL_)?OPTIONS|JDK_JAVA_OPTIONS|(MAVEN|GRADLE|SBT|ANT|JVM|KOTLIN)_OPTS)=-X(m[sxn]|ss)\d+[kKmMgG]?"
    r"|\w+=-D(file\.encoding|user\.(language|country|timezone))=[\w/-]+|PYTHONWARNINGS=(ignore|default|error|always|once)"
    r"|GOFLAGS=-(mod=(vendor|mod|readonly)|trimpath|race|v)|(GNU)?MAKEFLAGS=(-j\d*|-[ks])|RUBYOPT=-W(:no-\w+|\d)"
    r"|PYTEST_ADDOPTS=(-[qvxs]+|--(tb|color)=\w+)"
)
"""Words of options that load nothing."""
_OF_WORDS: Final = ("LD_PRELOAD", "MAKEFILES")
"""Variables whose paths may stand between blanks, too (ld.so(8); "The Variable MAKEFILES" of GNU make)."""
_OPTION: Final = re.compile(r"--?[A-Za-z][\w-]*[=:]|--[A-Za-z][\w-]*\Z|-[A-Za-z](?=\.?/|\Z)")


def check_variables(variables: Mapping[str, str], where: str, root: str = "") -> None:
    """Refuse variables that no command may be given.

    Args:
        variables: as they were written.
        where: the section that names them, for the message.
        root: absolute; without one, an absolute path is taken for one in the root.

    Raises:
        ConfigError: one is refused, and why.
    """
    for name, value in variables.items():
        if why := _refusal(name, value, root):
            raise ConfigError(f"{where}: the variable {name[:80]!r} {why}")


def _refusal(name: str, value: str, root: str) -> str:
    if not _NAME.fullmatch(name) or "\0" in value:
        return "holds a NUL, or has a name that no variable can have: use letters, digits and _ in names."
    if len(value.encode("utf-8", "surrogatepass")) + len(name) + 2 > _LONGEST:
        return f"is longer than {_LONGEST} bytes. Put it into a file."
    if _OURS.fullmatch(name):
        return "is made for each command. Name directories of programs in `toolchains` of [shell]; leave this one out."
    if re.fullmatch(_PATHS, name) and not _all_in_root(_paths(name, value), root):
        return f"makes programs load code from {value[:80]!r}. Name paths in the root, relative to it, or leave it out."
    if not re.fullmatch(_PATHS, name) and re.fullmatch(_OPTIONS, name) and not _options_in_root(name, value, root):
        return (
            f"can make programs load or run what {value[:80]!r} says. Name files in the root, as ./FILE, or put the "
            "options into the command."
        )
    return ""


def _paths(name: str, value: str) -> list[str]:
    return re.split(r"[:;\s]+" if name in _OF_WORDS else "[:;]", value)


def _all_in_root(paths: list[str], root: str) -> bool:
    return all(_in_root(each, root) for each in paths)


def _in_root(path: str, root: str) -> bool:
    if not path or path.startswith("~") or "$" in path:
        return False
    if path.startswith("/"):
        return not root or within(os.path.normpath(path), root)
    return os.path.normpath(path).split("/")[0] != ".."


def _options_in_root(name: str, value: str, root: str) -> bool:
    """Say whether options are about files of the root alone, and name one, or load nothing."""
    words = [word for word in value.split() if not re.fullmatch(_HARMLESS, f"{name}={word}")]
    rest = [_OPTION.sub("", word, count=1) if word.startswith("-") else word for word in words]
    paths = [each for each in rest if each]
    about_files = all(each.startswith(("./", "/")) and _in_root(each, root) for each in paths)
    return about_files and bool(paths or (value.strip() and not words))


def absolute_variables(variables: Mapping[str, str], root: str) -> dict[str, str]:
    """Return variables whose paths are absolute, as a command may change its directory."""
    return {
        name: (" " if name in _OF_WORDS else ":").join(
            os.path.normpath(os.path.join(root, each)) for each in _paths(name, value)
        )
        if re.fullmatch(_PATHS, name)
        else value
        for name, value in variables.items()
    }


def language_of(person: Mapping[str, str]) -> dict[str, str]:
    """Return the person's language and time zone, where commands can have them; without UTF-8 it is not taken."""
    found = {name: person[name] for name in ("LANG", "LC_ALL", "LC_CTYPE") if _LOCALE.fullmatch(person.get(name, ""))}
    found = {name: value for name, value in found.items() if re.search(r"utf-?8", value, re.IGNORECASE)}
    zone = person.get("TZ", "").removeprefix(":")
    return found | ({"TZ": zone} if _ZONE.fullmatch(zone) else {})
