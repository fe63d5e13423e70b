"""Output of a command as text, out of the JSON that the model and scripts have as its result. Pure.

Rule: only what is a command's result is read so (`workers.shell.command_line.exit_result`); whoever shows it makes it
visible (`supervisor.display.escape`).
"""

import json

from workers.catalog import find_tool


def output_text(tool: str, result: str) -> str:
    """Return what a command printed, its exit code where that was not 0, and what follows; another result as it is."""
    row = find_tool(tool)
    if row is None or not row.runs:
        return result
    try:
        found, end = json.JSONDecoder().raw_decode(result)
    except (ValueError, RecursionError):
        return result
    if not isinstance(found, dict) or not {"stdout", "stderr"} & set(found):
        return result
    parts = [text for text in (found.get("stdout"), found.get("stderr")) if isinstance(text, str) and text]
    code = found.get("exit_code")
    parts += [f"exit code {code}"] if code not in (0, None) else []
    return "\n".join(part.rstrip("\n") for part in parts) + result[end:]
