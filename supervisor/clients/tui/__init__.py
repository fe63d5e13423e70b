"""`strongroom tui`: the console's conversation on the full screen, by Textual.

Rule: what is shown, what lines and keys do, and which keys count is decided in `supervisor.clients.console`, by the
same classes; here it is only laid out and drawn. Nothing else imports Textual. Textual runs on asyncio, and so does
`SessionLink`: a thread reads the connection and hands each event to the loop, so no other bridge is needed.

    keys, mouse -> full_screen -> session_view: history_view, question_pane, prompt_area <- key_actions, approval_queue
                                       ^                                                        |
                                       +------------ items <--- session_state <==acp==> daemon--+
"""
