"""A hundred look-ups of one long session, as a model makes them: documentation, issues, packages, links of pages."""

import re
from typing import Final

SITES: Final = [
    *("github.com", "docs.python.org", "pypi.org", "developer.mozilla.org", "man7.org", "stackoverflow.com"),
    *("hexdocs.pm", "docs.rs", "en.wikipedia.org", "peps.python.org"),
]

_P: Final = "https://docs.python.org/3/"
_L: Final = _P + "library/"
_M: Final = "https://developer.mozilla.org/en-US/docs/Web/"
_I: Final = "https://github.com/python-trio/trio/issues"
_MAN: Final = "https://man7.org/linux/man-pages/"
_SO: Final = "https://stackoverflow.com/questions/"

_INDEX: Final = "The Python Standard Library. " + " ".join(
    f"[{name}]({_L}{name}.html)"
    for name in [
        "string",
        "re",
        "difflib",
        "textwrap",
        "struct",
        "codecs",
        "datetime",
        "zoneinfo",
        "calendar",
        "collections",
        "heapq",
        "bisect",
        "array",
        "types",
        "copy",
        "pprint",
        "enum",
        "math",
        "decimal",
        "random",
        "itertools",
        "functools",
        "operator",
        "pathlib",
        "tempfile",
        "glob",
        "shutil",
        "sqlite3",
        "zlib",
        "gzip",
        "hashlib",
        "hmac",
        "os",
        "io",
        "time",
        "argparse",
        "logging",
        "asyncio",
        "socket",
        "ssl",
        "select",
        "selectors",
        "signal",
        "mmap",
        "json",
        "base64",
        "html",
    ]
)
_LIST: Final = "Issues. " + " ".join(
    f"[#{number}]({_I}/{number})" for number in (3291, 3284, 3280, 3277, 3254, 3251, 3247, 3239, 3212, 3198, 3175, 3160)
)
_ISSUE: Final = "A task is cancelled twice. Duplicates #2712, see #3021 and python-trio/trio#2987. `trio.move_on_after`"
_QUESTIONS: Final = " ".join(
    f"[{title}]({_SO}{number}/{title})"
    for number, title in (
        (37278647, "fire-and-forget-python-async-await"),
        (48483348, "how-to-limit-concurrency-with-python-asyncio"),
        (53967281, "what-does-yield-without-value-do-in-context-manager"),
        (312443, "how-do-i-split-a-list-into-equally-sized-chunks"),
        (4906977, "how-can-i-access-environment-variables-in-python"),
        (3437059, "does-python-have-a-string-contains-substring-method"),
    )
)
_ARRAY: Final = " ".join(
    f"[{name}]({_M}JavaScript/Reference/Global_Objects/Array/{name})"
    for name in ["at", "concat", "every", "fill", "filter", "flat", "map"]
)
_SEE_ALSO: Final = " ".join(f"[{name}({section})]({_MAN}man{section}/{name}.{section}.html)" for name, section in (
    ("open", 2), ("openat2", 2), ("path_resolution", 7), ("landlock", 7), ("namespaces", 7), ("seccomp", 2)
))  # fmt: skip

LOOK_UPS: Final[list[tuple[str, str]]] = [
    (f"{_L}index.html", _INDEX),
    *(
        (f"{_L}{name}.html", "")
        for name in ["pathlib", "tempfile", "asyncio", "json", "re", "itertools", "sqlite3", "logging"]
    ),
    (f"{_L}asyncio-task.html", f"[Queues]({_L}asyncio-queue.html) [Streams]({_L}asyncio-stream.html)"),
    (f"{_L}asyncio-task.html#asyncio.timeout", ""),
    (f"{_L}asyncio-queue.html", ""),
    (f"{_L}asyncio-stream.html", ""),
    (f"{_L}os.path.html", ""),
    (f"{_P}whatsnew/3.13.html", ""),
    (f"{_P}howto/logging.html", ""),
    (f"{_P}reference/datamodel.html", ""),
    (f"{_P}reference/datamodel.html#object.__getattr__", ""),
    ("https://peps.python.org/pep-0654/", ""),
    ("https://pypi.org/project/trio/", f"[Home](https://github.com/python-trio/trio) [Issues]({_I})"),
    *((f"https://pypi.org/project/{name}/", "") for name in ("httpx", "requests", "msgspec", "rich", "click")),
    ("https://pypi.org/search/?q=async+http+client", "[aiohttp](https://pypi.org/project/aiohttp/)"),
    ("https://pypi.org/project/aiohttp/", ""),
    ("https://github.com/python-trio/trio", f"[Issues]({_I}) [Releases](https://github.com/python-trio/trio/releases)"),
    (_I, _LIST),
    (f"{_I}/3291", _ISSUE),
    (f"{_I}/2712", ""),
    (f"{_I}/3021", ""),
    (f"{_I}/2987", ""),
    *((f"{_I}/{number}", "") for number in (3284, 3280, 3277, 3254, 3251, 3247)),
    ("https://github.com/python-trio/trio/releases", ""),
    (f"{_I}?q=nursery+cancel", f"[#2441]({_I}/2441) [#1987]({_I}/1987) [#1457]({_I}/1457)"),
    (f"{_I}/2441", ""),
    (f"{_I}/1987", ""),
    (f"{_I}/1457", ""),
    (f"{_SO}tagged/python-asyncio", _QUESTIONS),
    *((link, "") for link in re.findall(r"https:[^)]+", _QUESTIONS)),
    (f"{_M}JavaScript/Reference/Global_Objects/Array", _ARRAY),
    *(
        (f"{_M}JavaScript/Reference/Global_Objects/Array/{name}", "")
        for name in ["at", "concat", "every", "filter", "map"]
    ),
    (f"{_M}JavaScript/Reference/Global_Objects/Promise", ""),
    (f"{_M}CSS/grid-template-columns", ""),
    (f"{_M}CSS/grid", ""),
    (f"{_M}API/Fetch_API", ""),
    (f"{_M}HTTP/Status/404", ""),
    (f"{_M}HTTP/Headers/Cache-Control", ""),
    (f"{_MAN}man2/open.2.html", _SEE_ALSO),
    *((f"{_MAN}man{section}/{name}.{section}.html", "") for name, section in (("openat2", 2), ("path_resolution", 7))),
    (f"{_MAN}man7/landlock.7.html", ""),
    (f"{_MAN}man2/seccomp.2.html", ""),
    (f"{_MAN}man1/find.1.html", ""),
    (f"{_MAN}man2/pidfd_open.2.html", ""),
    (f"{_MAN}man3/printf.3.html", ""),
    ("https://hexdocs.pm/elixir/Enum.html", ""),
    ("https://hexdocs.pm/elixir/GenServer.html", ""),
    ("https://hexdocs.pm/phoenix_live_view/welcome.html", ""),
    ("https://docs.rs/serde/latest/serde/", "[Deserialize](https://docs.rs/serde/latest/serde/trait.Deserialize.html)"),
    ("https://docs.rs/serde/latest/serde/trait.Deserialize.html", ""),
    ("https://docs.rs/tokio/latest/tokio/", "[task](https://docs.rs/tokio/latest/tokio/task/index.html)"),
    ("https://docs.rs/tokio/latest/tokio/task/index.html", ""),
    ("https://en.wikipedia.org/wiki/Tomato", "[Solanum](https://en.wikipedia.org/wiki/Solanum)"),
    ("https://en.wikipedia.org/wiki/Solanum", ""),
    ("https://en.wikipedia.org/wiki/Information_theory", ""),
    *(
        (f"{_L}{name}.html", "")
        for name in ["argparse", "hashlib", "datetime", "socket", "functools", "shutil", "enum", "struct"]
    ),
    (f"{_L}index.html", ""),
    *((f"https://github.com/python/cpython/issues/{number}", "") for number in (98766, 101100, 109649)),
    ("https://github.com/encode/httpx/blob/master/README.md", ""),
    ("https://github.com/encode/httpx/blob/master/CHANGELOG.md", ""),
    ("https://github.com/search?q=landlock+python&type=repositories", ""),
    (f"{_L}concurrent.futures.html", ""),
    (f"{_L}stdtypes.html#str.removeprefix", ""),
    (f"{_L}functions.html#open", ""),
    ("https://pypi.org/project/rich/", ""),
]
