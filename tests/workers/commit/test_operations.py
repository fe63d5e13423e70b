"""Whatever a command does to a tree: rehearsed and committed it leaves what it left on the overlay, and what it leaves
when it runs bare; before the commit nothing of the tree has changed.

The commands are real programs. `bare` is false where an overlay differs from a bare tree by design (files with several
names, of which one is written), `besides` matches paths that two runs of the program never have in common.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.workers.commit.conftest import copy_of
from tests.workers.commit.namespaces import ENVIRONMENT, Rehearsing
from tests.workers.commit.snapshot import Snapshot, lasting, snapshot, timeless, untouched
from workers.changes.effects import Committed


class Row(NamedTuple):
    name: str
    command: str
    bare: bool = True
    besides: str = "$^"


def python(code: str) -> str:
    return f"python3 - <<'P'\nimport os\n{code}\nP"


_GIT = (
    "export HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' "
    "GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'; alias git='git -c user.name=n -c user.email=e -c core.fsync=none'; "
    "shopt -s expand_aliases\n"
)
QUIET: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
_INDEX = r"\.git/(index|ORIG_HEAD|objects/pack/.*|objects/info/commit-graph)"

ROWS = (
    Row("nothing", "true"),
    Row("reads everything", "cat a b text d/* 2>&1; grep -r x . --devices=skip; ls -lR; find . -type f | xargs md5sum"),
    Row("an empty file", ": > new"),
    Row("a new file", "echo new > new"),
    Row("a new file in a directory", "echo new > d/sub/new"),
    Row("a file appended to", "echo more >> text"),
    Row("a file overwritten", "echo new > text"),
    Row("a file written in the middle", "printf new | dd of=big bs=1 seek=1000 conv=notrunc status=none"),
    Row("a file cut", "truncate -s 10 text"),
    Row("a file emptied", ": > text"),
    Row("a file enlarged with a hole", "truncate -s 1M text"),
    Row("a sparse file", "truncate -s 10M new; printf x | dd of=new bs=1 seek=5000000 conv=notrunc status=none"),
    Row("a sparse file written", "printf x | dd of=sparse bs=1 seek=100000 conv=notrunc status=none"),
    Row("a hole punched", "fallocate -p -o 4096 -l 8192 big"),
    Row("space allocated", "fallocate -l 100000 new"),
    Row("a memory-mapped write", python(
        "import mmap\nf = open('big', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[5:8] = b'new'"
    )),
    Row("a nameless file that gets a name", python(
        "f = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o640); os.write(f, b'new')\n"
        "os.link(f'/proc/self/fd/{f}', 'new', follow_symlinks=True)"
    )),
    Row("a file replaced by rename", "echo new > t; mv t text"),
    Row("a file edited in place by sed", "sed -i s/50/fifty/ text"),
    Row("a file edited by perl", "perl -pi -e s/50/fifty/ text"),
    Row("a file compressed", "gzip -n text"),
    Row("a mode", "chmod 600 text"),
    Row("a mode of everything", "chmod -R go-rwx .", bare=False),
    Row("a mode of a directory", "chmod 700 d/sub"),
    Row("a mode of the root", "chmod 750 ."),
    Row("no right at all", "chmod 000 text; mkdir n; echo x > n/x; chmod 000 n/x n d"),
    Row("a directory that nobody may write", "mkdir -p n/m; echo x > n/m/x; chmod 555 n/m n"),
    Row("a sticky directory", "mkdir n; chmod 1777 n"),
    Row("a set-group directory", "mkdir n; chmod 2755 n"),
    Row("a time", "touch -d '1999-01-01 01:01:01.5' text"),
    Row("a time that is now", "touch text"),
    Row("a time of a link", "touch -h -d '1999-01-01' link"),
    Row("touched and put back", "touch text; touch -d '2001-02-03 04:05:06.789' text"),
    Row("opened for writing", ": >> text; python3 -c \"open('b', 'r+')\""),
    Row("the same content again", "cp text t; cat t > text; rm t"),
    Row("a mode and back", "chmod 600 text; chmod 644 text"),
    Row("renamed and back", "mv text t; mv t text; mv d f; mv f d"),
    Row("a rename", "mv text other"),
    Row("a rename over a file", "mv text b"),
    Row("a rename into a directory", "mv text d/sub/"),
    Row("a rename out of a directory", "mv d/x .", bare=False),
    Row("a directory renamed", "mv d f", bare=False),
    Row("a directory renamed over an empty one", "mv -T d empty", bare=False),
    Row("a directory moved into another", "mv d e/", bare=False),
    Row("a new directory renamed", "mkdir n; echo x > n/x; mv n m; mv m/x m/y"),
    Row("two files exchanged", python(
        "import ctypes; assert not ctypes.CDLL(None).renameat2(-100, b'text', -100, b'b', 2)"
    )),
    Row("two new directories exchanged", "mkdir n m; echo n > n/n; echo m > m/m; " + python(
        "import ctypes; assert not ctypes.CDLL(None).renameat2(-100, b'n', -100, b'm', 2)"
    )),
    Row("deleted", "rm text"),
    Row("one name of two deleted", "rm a"),
    Row("both names deleted", "rm a a-too"),
    Row("a link deleted", "rm link dangling to-d"),
    Row("a directory deleted", "rm -rf d"),
    Row("an empty directory deleted", "rmdir empty"),
    Row("a directory in a directory deleted", "rm -rf d/sub"),
    Row("everything deleted", "rm -rf -- * .[!.]*"),
    Row("everything deleted by find", "find . -mindepth 1 -delete"),
    Row("deleted and made anew", "rm text; echo new > text"),
    Row("made and deleted", "echo new > new; mkdir n; mkfifo n/f; rm -rf new n"),
    Row("a directory made anew and empty", "rm -rf d; mkdir d"),
    Row("a directory made anew with other files", "rm -rf d; mkdir -p d/sub; echo new > d/sub/new; echo X > d/x"),
    Row("a directory made anew as it was", "cp -a d t; rm -rf d; cp -a t d; rm -rf t", bare=False),
    Row("whiteouts in a directory made anew", "rm -rf d; mkdir d; echo n > d/x; rm d/x; mkdir d/sub; rmdir d/sub"),
    Row("a directory made anew twice", "rm -rf d; mkdir -p d/sub; rm -rf d; mkdir -p d/sub/deep; touch d/sub/deep/z"),
    Row("a directory in place of a file", "rm text; mkdir -p text/in; echo x > text/in/x"),
    Row("a file in place of a directory", "rm -rf d; echo x > d"),
    Row("a link in place of a directory", "rm -rf d; ln -s e d"),
    Row("a directory in place of a link", "rm to-d; mkdir to-d; echo x > to-d/x"),
    Row("a file in place of a link", "rm link; echo x > link"),
    Row("a link in place of a file", "rm text; ln -s a text"),
    Row("a FIFO in place of a file", "rm text; mkfifo text"),
    Row("a FIFO in place of a directory", "rm -rf d; mkfifo d"),
    Row("written through a link", "echo more >> link; echo more > to-d/x", bare=False),
    Row("a relative link", "ln -s ../tree/a d/r"),
    Row("an absolute link", "ln -s /etc/passwd p"),
    Row("a dangling link", "ln -s nowhere n"),
    Row("a link to outside", "ln -s ../../../etc o; ln -s / r"),
    Row("a link to itself", "ln -s self self"),
    Row("a link to a name that is not UTF-8", r"ln -s $'to-\xff-there' l"),
    Row("a link with another target", "ln -sfn b link; ln -sfn e to-d"),
    Row("a longest link", "ln -s $(head -c 4000 /dev/zero | tr '\\0' y) l"),
    Row("another name of a file", "ln text too"),
    Row("another name elsewhere", "ln text d/sub/too; ln d/sub/too e/too"),
    Row("another name of a file with two", "ln a a-third"),
    Row("another name of a file that is written", "ln text too; echo more >> text"),
    Row("another name of a file that is replaced", "ln text too; echo new > t; mv t text"),
    Row("another name and the first deleted", "ln text too; rm text"),
    Row("names of a new file", "echo new > n; ln n n2; mkdir m; ln n m/n3"),
    Row("names in a new tree", "mkdir -p n/m; echo new > n/1; ln n/1 n/m/2; ln n/1 3"),
    Row("a name over a file", "ln -f text b"),
    Row("a tree of names", "cp -al d n", bare=False),
    Row("a file with two names written", "echo more >> a", bare=False),
    Row("a file with two names written by both", "echo more >> a; echo less > a-too", bare=False),
    Row("a file with two names, a mode", "chmod 600 a", bare=False),
    Row("a FIFO", "mkfifo -m 620 f"),
    Row("a FIFO's mode", "chmod 644 pipe"),
    Row("a FIFO deleted", "rm pipe socket"),
    Row("a socket", python("import socket; socket.socket(socket.AF_UNIX).bind('s')")),
    Row("a device, which is refused", "mknod null c 1 3; mknod w c 0 0; mknod b1 b 8 0", bare=False),
    Row("an attribute", python("os.setxattr('text', 'user.x', b'1')")),
    Row("an attribute changed", python("os.setxattr('b', 'user.note', b'bye')")),
    Row("a long attribute changed", python("os.setxattr('b', 'user.long', b'x' * 199 + b'y')")),
    Row("an attribute removed", python("os.removexattr('b', 'user.note')")),
    Row("attributes of directories", python(
        "os.setxattr('d', 'user.x', b'1'); os.removexattr('e', 'user.note')\n"
        "os.mkdir('n'); os.setxattr('n', 'user.x', b'2')"
    )),
    Row("a name with a line feed", r"echo x > $'n\ne\nw'; mkdir $'d\n'; mv text $'d\n/te\nxt'"),
    Row("a name with control characters", r"echo x > $'n\x1b[31m\x07\x7f\x01'; touch $'\x08'"),
    Row("a name that is not UTF-8", r"mkdir $'d\xff\xfe'; echo x > $'d\xff\xfe/\xc3'; mv text $'\xe9t\xe9'"),
    Row("names that are options", "echo x > ./-rf; mkdir -- --help; echo y > ./--help/-n"),
    Row("names with spaces and quotes", "echo x > \" a 'b' \\\"c\\\" \"; touch '*' '$HOME' '`x`' 'a\\b' '~'"),
    Row("names that look alike", "touch é $'e\\u0301' A TEXT"),
    Row("names of 255 bytes", "n=$(printf 'n%.0s' {1..255}); mkdir $n; echo x > $n/$n; m=${n/n/m}; mv text $m"),
    Row("a name of a write in progress", "n=.strongroom-0123456789abcdef.tmp; echo x > $n; rm $n"),
    Row("a deep tree", "p=$(printf 'd/%.0s' {1..150}); mkdir -p n/$p; echo x > n/$p/x; ln -s / n/$p/l"),
    Row("a deep tree deleted in part", "p=$(printf 'd/%.0s' {1..150}); mkdir -p n/$p; rm -rf n/d/d/d"),
    Row("a thousand files", "mkdir out; for i in {1..1000}; do echo $i > out/$i.o; done"),
    Row("files everywhere", "for i in {1..60}; do for d in . d d/sub e; do echo $i > $d/f$i; done; done; rm -f d/f?"),
    Row("cp -a", "cp -a d copy; cp -a link dangling out pipe copy/"),
    Row("tar", "tar cf t.tar d/sub e; rm -rf d/sub; tar xf t.tar; mkdir x; tar xf t.tar -C x; rm t.tar"),
    Row("install", "install -m 751 -D tool n/bin/tool"),
    Row("patch", "printf '%s\\n' '@@ -1,3 +1,3 @@' ' 1' '-2' '+two' ' 3' | patch -s text"),
    Row("split", "split -l 10 text part-"),
    Row("a background process", "(sleep 1000; echo late > late) & echo now > now", bare=False),
    Row("a daemon that still writes", "setsid bash -c 'trap \"\" TERM HUP; while :; do echo x >> d/x; done' & "
        "until [ $(wc -l < d/x) -gt 5 ]; do :; done; rm text", bare=False, besides="d/x|x-too"),
    Row("git init and commit", _GIT + "git init -qb main .; git add -A . 2>&1; git commit -qm one", besides=_INDEX),
    Row("git in full", _GIT + "git init -qb main .; git add text d; git commit -qm one; git checkout -qb other; "
        "echo 1 > text; git commit -qam two; git checkout -q main; git merge -q other; git rm -rq d; "
        "git commit -qm three; git mv text moved; git stash -q; git stash pop -q; git gc -q",
        besides=_INDEX + r"|\.git/(logs/refs/stash|packed-refs)"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_the_tree_after_a_commit_is_the_one_that_was_rehearsed(
    row: Row, rehearsing: Rehearsing, template: Path, memory: Path
) -> None:
    if os.geteuid() and row.name == "no right at all":
        pytest.skip("only root can look at what came of it")
    tree = copy_of(template, memory / "tree")
    since = memory.stat().st_mtime_ns  # by the clock of time stamps, which lags behind `time`
    before = snapshot(tree)
    rehearsing.begin(tree)
    ran = rehearsing.sh(row.command)
    effects = rehearsing.effects()
    assert snapshot(tree) == before, ran.output

    assert rehearsing.commit() == Committed(len(effects.changes)), ran.output
    after = snapshot(tree)
    besides = re.compile(row.besides)
    assert without(unlinked(lasting(after)), besides) == without(
        unlinked(lasting(untouched(ran.view, before))), besides
    ), ran.output
    if row.bare:
        (memory / "bare").mkdir()
        bare = copy_of(template, memory / "bare" / "tree")
        subprocess.run(["/bin/bash", "-c", row.command], cwd=bare, check=False, env=ENVIRONMENT, **QUIET)
        assert without(timeless(after, since), besides) == without(
            timeless(untouched(snapshot(bare), before), since), besides
        ), ran.output
    assert rehearsing.ask("close") == []


def unlinked(tree: Snapshot) -> Snapshot:
    """Leave out which names are one file: an overlay does not always show that."""
    return {path: entry._replace(same_as=b"") for path, entry in tree.items()}


def without(tree: Snapshot, besides: "re.Pattern[str]") -> Snapshot:
    """Leave out the content of files that no two runs have in common."""
    return {
        path: entry._replace(content="", mtime_ns=0) if besides.fullmatch(path.decode("utf-8", "replace")) else entry
        for path, entry in tree.items()
    }
