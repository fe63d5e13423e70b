"""Print the table of tools from the catalog, or check that a document holds it as it is: --check FILE."""

import sys
from pathlib import Path

from supervisor.config.config_file import Config
from supervisor.config.profiles import profiles
from supervisor.config.settings import Settings
from supervisor.tools.catalog import offers


def table() -> str:
    """Return the table in Markdown: one row a tool, with the profiles that have it."""
    known = profiles(Settings(Config(), Path("config.toml"), Path()))
    names = dict.fromkeys(name for profile in known.values() for name in profile.tools)
    rows = ["| tool | profiles | what the model is told |", "|---|---|---|"]
    for offer in offers(tuple(names)).values():
        inside = ", ".join(name for name, profile in known.items() if offer.name in profile.tools)
        optional = set(offer.input_schema["properties"]) - set(offer.input_schema.get("required", ()))
        arguments = ", ".join(f"{name}?" if name in optional else name for name in offer.input_schema["properties"])
        rows.append(f"| `{offer.name}({arguments})` | {inside} | {offer.description.replace('|', '/')} |")
    return "\n".join(rows)


def main() -> int:
    """Print or check; returns the exit code."""
    if sys.argv[1:2] != ["--check"]:
        print(table())
        return 0
    if table() in Path(sys.argv[2]).read_text("utf-8"):
        return 0
    print(f"{sys.argv[2]} does not hold the table of tools as it is; put in:\n\n{table()}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
