"""The category `web`: one tool, fetch_url, whose worker has no network of its own.

Rule: what the catalog needs is here and in `fetch_url`, and imports light. Everything else stands on libraries that
`prepare` imports, in the worker alone and before it is locked in; nothing is imported later.

    fetch_url -> fetcher -> http_client -> transport, broker_client ==wire==> the supervisor
                         -> kept_texts
                         -> content -> charset, html_to_markdown, html_to_flat_text
                                       -> visibility -> style_sheets, css_selectors, css_colours
"""

from typing import Final

from workers.tool import Tool
from workers.web.fetch_url import fetch_url

TOOLS: Final[tuple[Tool, ...]] = (fetch_url,)
