"""`strongroom console`: a person talks to an agent, sees what it does, and decides.

Rule: what is shown is decided in pure modules: `session_state` folds the daemon's updates into items (`shown`), and
`styled_text`, `status_bar`, `markdown_stream`, `approval_form`, `proposal_pages`, `choice_list` and `offers` turn them
into text; `answer_guard` tells which keys are meant, and `key_actions` what they do. Three screens show it: `terminal`
(prompt_toolkit; rich in `markdown_display` alone), `plain`, which imports neither, and `supervisor.clients.tui`.

    keys, lines -> terminal | plain -> slash_commands, session_controller, session_turns, session_link <==acp==> daemon
                         ^                        |
                         +------- items <--- session_state
"""
