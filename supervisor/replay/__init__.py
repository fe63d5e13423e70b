"""Replay: a recorded session driven again, by the real supervisor and real workers, in a copy of its root.

Rule: nothing of it touches the root, the journal or a network. What cannot be had as it was is said, and not guessed.

    session_replay -> replayed_root (the copy), replayed_answers (model and person, from the record) -> divergence
"""
