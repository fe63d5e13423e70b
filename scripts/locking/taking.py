"""Lines of confinement, and a file's text without one of them. Reads the tree, changes nothing."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from scripts.locking.sites import NO_LOCKS, SITES, Site


class Line(NamedTuple):
    """One line of confinement: what it is, and the file's text without it."""

    site: Site
    what: str
    without: str


def lines(tree: Path) -> Iterator[Line]:
    """Find all of them."""
    for site in SITES:
        text = (tree / site.file).read_text()
        for place in _places(ast.parse(text), site.names):
            for node, instead in TAKES[site.kind](place):
                source = ast.get_source_segment(text, node) or ""
                if source.startswith(NO_LOCKS):
                    continue
                where = f"{site.file.partition('/')[2]}:{node.lineno}"
                yield Line(site, f"{where} {' '.join(source.split())[:70]}", _without(text, node, instead))


def _places(tree: ast.Module, names: tuple[str, ...]) -> Iterator[ast.stmt]:
    methods = [each for node in tree.body if isinstance(node, ast.ClassDef) for each in node.body]
    for node in [*tree.body, *methods]:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        name = target.id if isinstance(target, ast.Name) else getattr(node, "name", "")
        any_of_them = isinstance(node, ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef)
        if name in names or ("*" in names and any_of_them):
            yield node


Node = ast.expr | ast.stmt | ast.keyword
Taken = Iterator[tuple[Node, str]]


def _rows(place: ast.stmt) -> Taken:
    """Calls, pairs and names of calls that stand in a tuple; not of what a confinement opens."""
    opens = [each.value for each in ast.walk(place) if isinstance(each, ast.keyword) and each.arg == "opens"]
    apart = {id(node) for each in opens for node in ast.walk(each)}
    for node in ast.walk(place):
        if id(node) in apart:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_shared":
            yield from ((each, "") for each in node.args)
        if not isinstance(node, ast.Tuple):
            continue
        for each in node.elts:
            a_call = isinstance(each, ast.Constant) and isinstance(each.value, str) and _only_names(node)
            if a_call or _is_row(each):
                yield each, ""


def _pairs(place: ast.stmt) -> Taken:
    """Rows of a table that are tuples themselves."""
    for node in ast.walk(place):
        if isinstance(node, ast.Tuple):
            yield from ((each, "") for each in node.elts if isinstance(each, ast.Tuple))


def _only_names(node: ast.Tuple) -> bool:
    return all(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in node.elts)


def _is_row(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("Deny", "Allow", "Notify")
    pair = isinstance(node, ast.Tuple) and len(node.elts) in (2, 3)
    named = pair and isinstance(node.elts[0], ast.Constant | ast.Attribute)  # type: ignore[attr-defined]
    return named or (isinstance(node, ast.Name) and node.id.startswith("NO_"))


def _flags(place: ast.stmt) -> Taken:
    for node in ast.walk(place):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            names = (ast.Name, ast.Attribute, ast.IfExp)
            yield from ((each, "0") for each in (node.left, node.right) if isinstance(each, names))


def _conditions(place: ast.stmt) -> Taken:
    for node in ast.walk(place):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Allow":
            yield from ((each, "()") for each in node.args[1:])


def _acts(place: ast.stmt) -> Taken:
    for node in ast.walk(place):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, "pass"


def _refusals(place: ast.stmt) -> Taken:
    for node in ast.walk(place):
        if isinstance(node, ast.Raise):
            yield node, "pass"


def _choices(place: ast.stmt) -> Taken:
    """Instead of either this or nothing: nothing."""
    for node in ast.walk(place):
        if isinstance(node, ast.IfExp):
            for each in (node.body, node.orelse):
                if ast.unparse(each) in ("0", "()"):
                    yield node, ast.unparse(each)


def _steps(place: ast.stmt) -> Taken:
    """Instructions of a filter's program."""
    for node in ast.walk(place):
        if isinstance(node, ast.Tuple | ast.List):
            for each in node.elts:
                a_call = isinstance(each, ast.Call) and ast.unparse(each.func) == "Instruction"
                if a_call or isinstance(each, ast.Starred) or ast.unparse(each) in ("_FAILS", "_PASSES"):
                    yield each, ""


def _bits(place: ast.stmt) -> Taken:
    for node in ast.walk(place):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            bits = [1 << at for at in range(node.value.bit_length()) if node.value & 1 << at]
            yield from ((node, str(node.value & ~bit)) for bit in bits)


def _keywords(place: ast.stmt) -> Taken:
    """What a process is started with; not its streams, without which it would have none."""
    for node in ast.walk(place):
        if isinstance(node, ast.keyword) and node.arg not in ("stdin", "stdout", "stderr", "bufsize", "pass_fds"):
            yield node, ""


TAKES: Final = {
    "rows": _rows,
    "pairs": _pairs,
    "flags": _flags,
    "conditions": _conditions,
    "acts": _acts,
    "refusals": _refusals,
    "choices": _choices,
    "steps": _steps,
    "bits": _bits,
    "keywords": _keywords,
}


def _without(text: str, node: Node, instead: str) -> str:
    rows = text.splitlines(keepends=True)
    begin = sum(len(row.encode()) for row in rows[: node.lineno - 1]) + node.col_offset
    end = sum(len(row.encode()) for row in rows[: (node.end_lineno or 0) - 1]) + (node.end_col_offset or 0)
    raw = text.encode()
    if not instead and raw[end : end + 1] == b",":
        end += 1
    return (raw[:begin] + instead.encode() + raw[end:]).decode()
