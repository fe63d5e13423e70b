"""Print the reference of the configuration, or check that a document holds it as it is: --check FILE."""

import sys
from pathlib import Path

from supervisor.config.reference import as_markdown


def main() -> int:
    """Print or check; returns the exit code."""
    if sys.argv[1:2] != ["--check"]:
        print(as_markdown())
        return 0
    if as_markdown() in Path(sys.argv[2]).read_text("utf-8"):
        return 0
    print(f"{sys.argv[2]} does not hold the reference as it is; put in:\n\n{as_markdown()}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
