"""Commands that are rehearsed in a copy of the root, where it cannot be shown beneath an overlay.

Rule: what a command changes in its copy becomes an upper layer, and from there on everything is as with an overlay.

    tree_copy -> the command -> copy_layer -> workers/commit
    copy_locks, caretaker    what holds it where there are no namespaces
"""
