"""The agent in a Python session: plain, IPython or a notebook.

>>> from supervisor.clients import repl
>>> repl.start(model="offline", root="vault")
('ok', 4711)
>>> repl.chat("read idea.md")
"""

from supervisor.clients.repl.api import chat, clear, history, start

__all__ = ["chat", "clear", "history", "start"]
