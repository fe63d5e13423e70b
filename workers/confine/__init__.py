"""Confinement of workers by the kernel, put on in one order.

Rule: `STEPS` is the one table of protections. Each row is put on by itself, and one that is unavailable stops
the worker, unless the operator listed it in `allow_degraded`. Nothing here is ever taken off: a process that
passed `confine` stays so until it ends. The order matters: the parent's death is checked after everything
that could clear it, and Landlock and seccomp come last because they forbid what the others need.
"""

from workers.confine.privileges import die_with
from workers.confine.steps import STEPS, Enforced, ProtectionUnavailable, confine

__all__ = ["STEPS", "Enforced", "ProtectionUnavailable", "confine", "die_with"]
