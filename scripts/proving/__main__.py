"""Small real projects, driven through a day's work, and a table of how that went."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from scripts.proving.catalog import NEEDS, PROJECTS, Project
from scripts.proving.drive import GOOD, NONE, STEPS, Outcome, drive
from scripts.proving.registries import NotReached, lay_out
from tests.daemon_process import DaemonProcess

_NAME: Final = 18
_CELL: Final = 9
_HEAD: Final = ("project", "language", *STEPS, "asked", "s")


def main() -> int:
    """Return 0 when every project that could be tried went well."""
    parser = argparse.ArgumentParser(prog="scripts/projects", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--made", action="store_true", help="only those that are made here: no registry is asked")
    parser.add_argument("--profile", default="code", help="the profile of the sessions")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the daemon's configuration")
    parser.add_argument("--keep", action="store_true", help="leave the projects and the journal to be looked at")
    options = parser.parse_args()
    chosen = [each for each in PROJECTS if not options.names or each.name in options.names]
    chosen = [each for each in chosen if each.origin == "made" or not options.made]
    base = Path(tempfile.mkdtemp(prefix="strongroom-projects-"))
    try:
        return _prove(chosen, base, options.profile, options.config)
    finally:
        if options.keep:
            print(f"everything is in {base}", file=sys.stderr)
        else:
            shutil.rmtree(base, ignore_errors=True)


def _prove(projects: Sequence[Project], base: Path, profile: str, config: Path | None) -> int:
    print(_row(_HEAD), flush=True)
    outcomes = []
    daemon = DaemonProcess(base / "home", base)
    daemon.configure(config.read_text() if config is not None else "")
    with daemon:
        for project in projects:
            if missing := [each for each in NEEDS[project.language] if shutil.which(each) is None]:
                print(_row((project.name, project.language, f"no toolchain ({', '.join(missing)})")), flush=True)
                continue
            root = base / project.name
            root.mkdir()
            try:
                lay_out(project, root)
            except NotReached as error:
                print(_row((project.name, project.language, f"not fetched ({error})"[:100])), flush=True)
                continue
            outcomes.append(drive(project, root, daemon, profile))
            print("\n".join([_row(_cells(outcomes[-1])), *_told(outcomes[-1])]), flush=True)
    print(_total(outcomes))
    return int(any(each.said for each in outcomes))


def _cells(outcome: Outcome) -> tuple[str, ...]:
    steps = tuple(outcome.steps[step] for step in STEPS)
    return outcome.project.name, outcome.project.language, *steps, str(len(outcome.asked)), f"{outcome.seconds:.1f}"


def _row(cells: Sequence[str]) -> str:
    name, *others = cells
    return name.ljust(_NAME) + " ".join(each.ljust(_CELL) for each in others).rstrip()


def _told(outcome: Outcome) -> Iterator[str]:
    """Yield what was asked, and what went wrong."""
    yield from (f"    asked in {asked}" for asked in outcome.asked)
    yield from (f"    failed in {step}: {why}" for step, why in outcome.said.items())


def _total(outcomes: Sequence[Outcome]) -> str:
    tried = [each.steps[step] for each in outcomes for step in STEPS if each.steps[step] != NONE]
    asked = sum(len(each.asked) for each in outcomes)
    return f"{len(outcomes)} projects, {tried.count(GOOD)} of {len(tried)} steps good, {asked} questions"


if __name__ == "__main__":
    sys.exit(main())
