"""`strongroom console`: a person talks to an agent, sees what it does, and decides.

Rule: what is shown is decided in pure modules: `session_state` folds the daemon's updates into items (`shown`), and
`styled_text`, `status_bar`, `markdown_stream`, `approval_form`, `proposal_pages`, `choice_list` and `completion` turn
them into text; `answer_guard` tells which keys are meant. Two screens show it: `terminal` (prompt_toolkit; rich in
`markdown_display` alone) and `plain`, which imports neither.

    keys, lines -> terminal | plain -> slash_commands, session_controller, session_turns, session_link <==acp==> daemon
                         ^                        |
                         +------- items <--- session_state
"""
