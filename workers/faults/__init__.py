"""Faults that a plan asks for, happening for real in a worker (`strongroom daemon --faults`).

Rule: a worker imports this only where its `Start` allows faults, before it is locked in. A fault has the worker's own
confinement: what the kernel refuses it is refused, and that is how it ends.
"""
