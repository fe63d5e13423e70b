"""Modules that are left out of what imports them, in processes that have not imported them yet."""

import subprocess
import sys


def _printed(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_msgspec_is_imported_without_what_it_has_no_need_of() -> None:
    code = "from supervisor.system.left_out import import_msgspec as f; import sys; f(); print(*sys.modules)"
    modules = _printed(code)
    assert "msgspec" in modules
    assert {"typing_extensions", "platform"}.isdisjoint(modules)


def test_whoever_imports_it_later_gets_the_module_itself() -> None:
    code = "from supervisor.system.left_out import import_msgspec as f; f(); import platform as p; print(p.machine())"
    (machine,) = _printed(code)
    assert machine
