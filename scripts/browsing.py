"""Opens an exported page whose session is hostile in a real browser; says what on it ran, was fetched, or is unseen.

Rule: the browser is first shown a page whose script runs, so that silence means something.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from supervisor.categories.media import MediaConfig
from supervisor.config.settings import load
from supervisor.journal.contents import ContentStore
from supervisor.journal.journal import open_journal
from supervisor.journal.kept_content import KeptContent
from supervisor.reports.history import history
from tests.hostile_page import faults_of, hostile_facts
from tests.media_files import picture

_BROWSERS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_OPTIONS: Final = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,2600")
_RUNS: Final = "<title>still</title><script>document.title = 'ran'</script>"
_UNFOLDED: Final = '<details open=""'
_DARK: Final = "--blink-settings=preferredColorScheme=0"
_PATIENCE_S: Final = 120


def main() -> int:
    """Return 1 where a page does anything but stand there, 2 without a browser."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="keep the page and pictures of it there")
    kept: Path | None = parser.parse_args().pictures
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        print(f"No browser: install one of {', '.join(_BROWSERS)}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        control = folder / "control.html"
        control.write_text(_RUNS)
        if "<title>ran" not in _shown(browser, control, folder)[0]:
            print("This browser runs no scripts at all: nothing would be shown by it.", file=sys.stderr)
            return 2
        page = folder / "page.html"
        page.write_text(_page(folder))
        document, fetched = _shown(browser, page, folder)
        found = [*faults_of(document.replace(_UNFOLDED, "<details")), *(f"fetched {each}" for each in fetched)]
        found += ["a script ran"] if "<title>ran" in document else []
        print(*found, f"{len(document)} characters, {document.count('<details')} folded, {len(found)} faults", sep="\n")
        if kept is not None:
            _keep(browser, page, kept)
    return 1 if found else 0


def _page(folder: Path) -> str:
    """Return the page of a hostile session."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    settings = load({"STRONGROOM_HOME": str(home)})
    content = picture()
    digest = ContentStore(settings.contents, settings.config.section(MediaConfig)).put("s", content)
    with open_journal(settings.journal) as journal:
        journal.append("s", *hostile_facts(folder, KeptContent(digest, "image/png", len(content), "a.png", 64, 48)))
    return history(settings, "s", "html").replace("<details", _UNFOLDED)


def _shown(browser: str, page: Path, folder: Path) -> tuple[str, list[str]]:
    """Return the document that a browser has made of a page, and what it has asked a network for."""
    log = folder / "net.json"
    options = (*_OPTIONS, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--virtual-time-budget=3000")
    document = _run(browser, *options, "--dump-dom", page.as_uri())
    events = json.loads(log.read_text())["events"]
    addresses = {each.get("params", {}).get("url", "") for each in events}
    return document, sorted(each for each in addresses if "evil" in each or "example" in each)


def _keep(browser: str, page: Path, kept: Path) -> None:
    kept.mkdir(parents=True, exist_ok=True)
    shutil.copy(page, kept)
    for name, options in {"light": (), "dark": (_DARK,)}.items():
        _run(browser, *_OPTIONS, *options, f"--screenshot={kept / f'{name}.png'}", page.as_uri())


def _run(*command: str) -> str:
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=_PATIENCE_S
    ).stdout.decode()


if __name__ == "__main__":
    sys.exit(main())
