"""Variables that keep programs from leaving caches in the root, and from news of themselves.

Rule: a cache that is made anew at no cost goes to the command's own /tmp, or is not written; what people expect to
find in the root (build outputs, reports, environments) stays where it is. Python reads the byte-code that is there
and writes none: PYTHONPYCACHEPREFIX would have it compile its own library for each command, 0.6 s of a test run.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_CACHES: Final = "/tmp/.caches"  # noqa: S108 - the private one

QUIET: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": f"-o cache_dir={_CACHES}/pytest",
        "MYPY_CACHE_DIR": f"{_CACHES}/mypy",
        "RUFF_CACHE_DIR": f"{_CACHES}/ruff",
        "HYPOTHESIS_STORAGE_DIRECTORY": f"{_CACHES}/hypothesis",
        "XDG_CACHE_HOME": f"{_CACHES}/home",
        "GOCACHE": f"{_CACHES}/go-build",
        "POETRY_VIRTUALENVS_IN_PROJECT": "true",  # a HOME ends with the command, and an environment there
        "PIPENV_VENV_IN_PROJECT": "1",
        "NO_UPDATE_NOTIFIER": "1",
        "npm_config_update_notifier": "false",
        "npm_config_fund": "false",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "NEXT_TELEMETRY_DISABLED": "1",
        "DO_NOT_TRACK": "1",
    }
)
"""Of every command, beneath what the operator says."""
