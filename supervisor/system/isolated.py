"""Commands of our own interpreter that run none but our own code.

Rule: isolated (-I), so that no variable, no directory of the user and no current directory is looked for modules in.
What is ours comes after the standard library and before all that is installed. Of the environment this only takes away
what is code, or where code is looked for. It imports next to nothing: entry points have it.
"""

import os
import sys
from collections.abc import MutableMapping
from typing import Final

CODE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The directory of `supervisor` and `workers`."""
_BEGIN: Final = "import sys; del sys.argv[0]; sys.path += sys.argv[1:3]; del sys.argv[1:3]; import site; site.main()\n"
_PREFIXES: Final = ("PYTHON", "__PYVENV", "LD_PRELOAD", "LD_AUDIT", "OPENSSL_", "GCONV_PATH")
"""Python's own; it obeys PYTHONEXECUTABLE also where it is isolated. The others name libraries for C to load: ld.so(8),
openssl-env(7), iconv(3)."""


def isolated(program: str, name: str, libraries: str = CODE) -> list[str]:
    """Return the command that runs the Python `program` as `name`, up to its arguments.

    `libraries` is a directory with libraries, where they may lie in one that Python does not know of by itself.
    """
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BEGIN + program, name, CODE, libraries]


def libraries() -> str:
    """Return the directory in which what everything of ours needs is installed, without importing that."""
    from importlib.util import find_spec

    found = find_spec("msgspec")
    assert found is not None
    assert found.origin is not None
    return os.path.dirname(os.path.dirname(found.origin))


def forget_code(environment: MutableMapping[str, str] = os.environ) -> None:
    """Take from the environment, by default that of this process, what is code or says where code is."""
    for name in [each for each in environment if each.startswith(_PREFIXES)]:
        del environment[name]
    places = environment.get("LD_LIBRARY_PATH", "").split(":")
    if not all(each.startswith("/") for each in places):  # an empty one is the current directory
        environment.pop("LD_LIBRARY_PATH", None)


def environment_without_code() -> dict[str, str]:
    """Return the environment of this process for another one."""
    environment = dict(os.environ)
    forget_code(environment)
    return environment
