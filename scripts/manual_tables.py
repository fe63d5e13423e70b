"""Write the tables of tools and of configuration into MANUAL.md, as the code has them; --check only compares."""

import sys
from pathlib import Path

from supervisor.config.config_keys import Config
from supervisor.config.profiles import profiles
from supervisor.config.reference import as_markdown
from supervisor.config.settings import Settings
from supervisor.tools.catalog import offers

MANUAL = Path(__file__).parent.parent / "MANUAL.md"


def tools() -> str:
    """Return the tools in Markdown: one row each, with the profiles that have it."""
    known = profiles(Settings(Config(), Path("config.toml"), Path()))
    names = dict.fromkeys(name for profile in known.values() for name in profile.tools)
    rows = ["| tool | profiles | what the model is told |", "|---|---|---|"]
    for offer in offers(tuple(names)).values():
        inside = ", ".join(name for name, profile in known.items() if offer.name in profile.tools)
        optional = set(offer.input_schema["properties"]) - set(offer.input_schema.get("required", ()))
        arguments = ", ".join(f"{name}?" if name in optional else name for name in offer.input_schema["properties"])
        rows.append(f"| `{offer.name}({arguments})` | {inside} | {offer.description.replace('|', '/')} |")
    return "\n".join(rows)


def with_tables(manual: str) -> str:
    """Return the manual with each table as it is now, between its marks."""
    for mark, table in (("tools", tools()), ("configuration", as_markdown())):
        before, begin, rest = manual.partition(f"<!-- {mark}: printed by scripts/manual_tables.py -->\n")
        _, end, after = rest.partition(f"<!-- /{mark} -->")
        manual = f"{before}{begin}\n{table.strip()}\n\n{end}{after}"
    return manual


def main() -> int:
    """Write, or check; returns the exit code."""
    before = MANUAL.read_text("utf-8")
    after = with_tables(before)
    if before == after:
        return 0
    if "--check" in sys.argv[1:]:
        print(
            "MANUAL.md does not hold the tables as they are: run .venv/bin/python -m scripts.manual_tables",
            file=sys.stderr,
        )
        return 1
    MANUAL.write_text(after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
