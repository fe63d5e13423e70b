"""Lines that state no rule about files, however near they come: of instructions as people write them."""

from pathlib import Path
from typing import Final

_TREE: Final = Path(__file__).parents[3]
_DOCUMENTS: Final = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")

NEAR: Final = """
Never change behaviour in a refactoring.
Never change the public API without a deprecation.
Never change `foo()` and `bar()` in one commit.
Never change main.
Never change `main`.
Do not change the version.
Do not change true/false defaults.
Do not touch the network in tests.
Do not touch `window.location`.
Do not touch `self.state` outside of the lock.
Do not edit generated files by hand.
Do not edit `src/generated/` by hand.
Do not edit src/gen/api.py directly; run `make gen`.
Do not edit `schema.sql` unless you also add a migration.
Do not edit package-lock.json, use npm.
Never edit migrations/ that have been released.
Never edit migrations/ after release.
Never modify a migration.
Never modify git history.
Never modify `/etc/hosts`.
Never modify ~/.ssh/config.
Never modify ../other/file.py.
Never delete branches.
Never delete user data.
Never delete a test to make the suite pass.
Never delete tests/ without asking.
Never delete files without asking.
Never delete files that you did not create.
Do not delete comments.
Do not delete the cache key.
Do not remove tests.
Do not remove error handling.
Don't remove or/and operators.
Don't modify https://example.org/a.
Don't edit and/or rewrite history.
Don't change client/server contracts.
Don't touch @scope/package.
Do not modify `a/b.py` or its callers.
Do not modify `$HOME/x`.
Do not modify `a b/c.py`.
Do not modify "quoted text".
Do not overwrite variables.
Do not rewrite what works.
Do not alter table definitions.
Do not edit README.md and its translations.
You should not change migrations/.
Try not to edit `vendor/`.
Avoid changing `vendor/`.
Prefer not to touch legacy/.
It is best never to change migrations/.
We never change migrations/.
Why do you never change migrations/?
If asked, never change migrations/.
When you never change migrations/, say so.
Never change migrations/ or the tests that use them.
Never change migrations/, config/ or anything else that is shared.
Always change migrations/.
Change migrations/ only with care.
Delete build/ before you begin.
Remove `dist/` after a release.
The `dist/` directory is generated.
`vendor/` must be changed together with go.sum.
`vendor/` must not be changed by hand.
`config` is read-only.
`config.debug` is read-only.
`User.name` must not be changed.
`get` must not be removed.
Properties are read-only.
The database is off-limits.
The root is read-only to the worker.
API keys must never be removed from the vault.
Files must not be deleted while they are open.
Do not run `make deploy`.
Never run rm -rf.
Never commit secrets.
Never push to main.
Do not create files in `src/`.
Do not add dependencies.
Never use `any`.
Do not use var.
Never log passwords.
Do not write to disk.
Do not ask for confirmation.
Use `never` for exhaustive checks.
Never.
Do not.
Never change
Do not delete or
Do not delete it.
Do not delete this.
Don't delete anything you might need.
"""

_TEXTS: Final = (NEAR, *((_TREE / name).read_text("utf-8") for name in _DOCUMENTS))
HONEST: Final = [line for text in _TEXTS for line in text.splitlines() if line.strip()]
