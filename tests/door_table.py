"""THE TABLE of ways out that an attacker's Python tries in the worker of each category: data only.

Rule: `tests/doors.py` says what a row means and what its code finds. A way that is tried in one category alone stands
with that category's tests. A row's locks are exact: each of them holds it alone, and no other does.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from tests.doors import SANDBOX, Door, Held, Locks

L: Final = ("landlock",)
S: Final = ("seccomp",)
N: Final = ("namespaces",)
X: Final = SANDBOX
LS, LN, SN, LSN = (*L, *S), (*L, *N), (*S, *N), (*L, *S, *N)

FILE: Final = Held(L, L, LS, LN, X)
"""What Landlock judges; the web worker has no call for it, the others' own trees do not show it."""
NAME: Final = Held(L, LS, LS, LN, X)
"""A name that is changed: no search worker may."""
MOVE: Final = Held(L, LS, None, LN, X)
"""The same, from one place to another."""
SHOWN: Final = Held(L, L, None, LN, X)
"""What leads out of the root by a name in it."""
ABOUT: Final = Held(S, S, S, SN, X)
"""What Landlock does not see."""
MODE: Final = Held(S, S, S, N, X)
"""The same, which restoring needs."""
LINK: Final = Held(LS, LS, LS, LSN, X)
"""What Landlock sees and nobody needs."""
SIGNAL: Final = Held(LS, LSN, LS, LS, X)
OTHERS: Final = Held(S, SN, S, S, X)
"""Other processes: in its PID namespace, the search worker sees none."""
EVERYWHERE: Final = Held(S, S, S, S, S)
RAW: Final = Held(S, S, S, S, X)
"""What needs powers over the network namespace: nobody in a command's sandbox has them."""
WORKERS: Final = Held(S, S, S, S)
"""A command may do it."""
PIPE: Final = Held(S, S, None, S)

for_root: Final = partial(Door, as_root=True)
"""A door that empty capabilities hold besides, and nobody but root has."""

THREAD: Final = """
child = threading.Thread(target=int)
try:
    child.start()
except RuntimeError:
    raise PermissionError(errno.EPERM, 'no thread')
child.join()
"""

DOORS: Final = (
    # Files outside the root.
    Door("read", FILE, "result = open(outside + '/secret').read()"),
    Door("read by a link", Held(L), "result = open(outside + '/link').read()"),
    Door("read by a link in the root", SHOWN, "result = open(root_path + '/link/secret').read()"),
    Door("read by openat2", FILE, "os.close(call('openat2', -100, out('secret'), bytes(24), 24))"),
    Door("create", FILE, "open(outside + '/new', 'x').close()"),
    Door("append", FILE, "open(outside + '/secret', 'a').close()"),
    Door("truncate on opening", FILE, "opened(outside + '/secret', os.O_RDONLY | os.O_TRUNC)"),
    Door("truncate by path", LINK, "os.truncate(outside + '/secret', 0)"),
    Door("list", FILE, "result = os.listdir(outside)"),
    Door("list the top", Held(L, L, LS, None, L), "result = os.listdir('/')"),
    Door("make a directory", NAME, "call('mkdirat', -100, out('new'), 0o700)"),
    Door("remove a file", NAME, "call('unlinkat', -100, out('secret'), 0)"),
    Door("remove a directory", NAME, "call('unlinkat', -100, out('empty'), 0x200)"),
    Door("move a file out", MOVE, "call('renameat', -100, within('kept'), -100, out('goods'))"),
    Door("move a file in", MOVE, "call('renameat', -100, out('secret'), -100, within('secret'))"),
    Door("up from the root", SHOWN, "result = os.listdir(os.open('../outside', os.O_RDONLY, dir_fd=top))"),
    Door("by /proc/self/root", FILE, "result = open('/proc/self/root' + outside + '/secret').read()"),
    Door("by /proc/self/fd", SHOWN, "result = os.listdir(f'/proc/self/fd/{top}/../outside')"),
    Door("a device", Held(L, L, LS, LN), "opened('/dev/null', os.O_RDWR)"),
    for_root("a disk's device", Held(LS, LSN, LSN, LSN, X), "os.mknod(outside + '/disk', 0o060600, os.makedev(7, 0))"),
    Door("its own status", Held(L, L, LS, L), "opened('/proc/self/status')"),
    Door("its own memory", Held(L, LN, LS, LN), "opened('/proc/self/mem', os.O_RDWR)"),
    Door("change into a directory", ABOUT, "os.chdir(outside)"),
    Door("ask about a file", Held(None, None, S, N, X), "os.stat(outside + '/secret')"),
    Door("read a link's text", ABOUT, "result = os.readlink(outside + '/link')"),
    Door("chmod", MODE, "os.chmod(outside + '/secret', 0o600)"),
    Door("chmod of a descriptor", Held(S, S), "os.fchmod(os.open(root_path, os.O_RDONLY), 0o700)"),
    Door("chmod in the root", Held(S, S), "os.chmod(root_path + '/kept', 0o600)"),
    Door("chown", ABOUT, "os.chown(outside + '/secret', -1, -1)"),
    Door("utime", MODE, "os.utime(outside + '/secret', (0, 0))"),
    Door("mode of a device", Held(shell=X), "os.chmod('/dev/null', os.stat('/dev/null').st_mode & 0o777)"),
    Door("times of a device", Held(shell=X), "os.utime('/dev/null')"),
    Door("set an attribute", ABOUT, "os.setxattr(outside + '/secret', 'user.mark', b'1')"),
    Door("list attributes", ABOUT, "result = os.listxattr(outside + '/secret')"),
    Door("remove an attribute", ABOUT, "past(errno.ENODATA, os.removexattr, outside + '/secret', 'user.mark')"),
    Door("link in", Held(LS, LS, None, LSN, X), "os.link(outside + '/secret', root_path + '/linked')"),
    Door("link out", Held(LS, LS, None, LSN, X), "os.link(root_path + '/kept', outside + '/linked')"),
    Door("symlink out", LINK, "os.symlink('secret', outside + '/linked')"),
    Door("symlink in the root", Held(LS, LS), "os.symlink(outside, root_path + '/hole')"),
    Door("FIFO out", Held(LS, LS, LS, LN, X), "os.mkfifo(outside + '/fifo')"),
    Door("FIFO in the root", Held(LS, LS), "os.mkfifo(root_path + '/fifo')"),
    Door("exchange", NAME, "call('renameat2', -100, out('secret'), -100, out('link'), 2)"),
    Door(
        "leave a whiteout", EVERYWHERE, "past(errno.ENOENT, call, 'renameat2', -100, b'/none/a', -100, b'/none/b', 4)"
    ),
    Door("watch", WORKERS, "os.close(call('inotify_init1', 0))"),
    Door("open by handle", EVERYWHERE, "call('open_by_handle_at', -1, 0, 0)"),
    # What is the supervisor's.
    Door("read the journal", FILE, "result = open(outside + '/journal.db').read()"),
    Door("write the journal", FILE, "opened(outside + '/journal.db', os.O_WRONLY)"),
    Door("read the configuration", FILE, "result = open(outside + '/config.toml').read()"),
    Door("write the configuration", FILE, "opened(outside + '/config.toml', os.O_WRONLY)"),
    Door("read what was kept", FILE, "result = open(outside + '/kept/pack').read()"),
    Door("remove what was kept", NAME, "call('unlinkat', -100, out('kept/pack'), 0)"),
    Door("the daemon's own socket", ABOUT, "socket.socket(socket.AF_UNIX).connect(path)"),
    Door(
        "its program's code", Held(S, S, S, N), "os.chmod(kernel.__file__, os.stat(kernel.__file__).st_mode & 0o7777)"
    ),
    # The root itself, where it is only read.
    Door("create in the root", Held(search=L), "open(root_path + '/made', 'x').close()"),
    Door("write in the root", Held(search=L), "open(root_path + '/kept', 'w').close()"),
    Door("truncate in the root", Held(search=L), "opened(root_path + '/kept', os.O_RDONLY | os.O_TRUNC)"),
    Door("remove in the root", Held(search=LS), "os.unlink(root_path + '/kept')"),
    Door("make a directory in the root", Held(search=LS), "os.mkdir(root_path + '/made')"),
    Door("rename in the root", Held(search=LS), "os.rename(root_path + '/kept', root_path + '/made')"),
    Door("link in the root", Held(S, LS), "os.link(root_path + '/kept', root_path + '/made')"),
    # Programs and memory.
    Door("fork", Held(S, None, S, S), "in_a_child(os.getpid)"),
    Door("thread", WORKERS, THREAD),
    Door("execute", Held(LS, L, LS, LSN), "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)"),
    Door("execute by the shell", Held(LS, L, LS, LSN), "subprocess.run(['/bin/sh', '-c', 'exit 0'])"),
    Door("execute a descriptor", WORKERS, "call('execveat', -1, b'', 0, 0, 0x1000)"),
    Door("execute the loader", Held(LS, L, LS, LSN), "execute(loader)"),
    Door("execute itself", Held(LS, L, LS, LSN), "execute('/proc/self/exe')"),
    Door("execute what lies outside", Held(LS, L, LS, LSN, X), "execute(outside + '/program')"),
    Door("file in memory", WORKERS, "os.close(os.memfd_create('x'))"),
    Door("secret file in memory", EVERYWHERE, "os.close(call('memfd_secret', 0))"),
    Door("executable memory", WORKERS, "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)"),
    Door(
        "executable file",
        Held(S, S, None, SN),
        "code = os.open(root_path + '/kept', os.O_RDONLY)\n"
        "mmap.mmap(code, 4, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    ),
    Door("make memory executable", WORKERS, "call('mprotect', call('mmap', 0, 4096, 3, 0x22, -1, 0), 4096, 5)"),
    Door("clone3", EVERYWHERE, "call('clone3', 0, 0)"),
    # Sockets.
    Door("IPv4 socket", EVERYWHERE, "socket.socket(socket.AF_INET).close()"),
    Door("IPv6 socket", EVERYWHERE, "socket.socket(socket.AF_INET6).close()"),
    Door("datagram socket", EVERYWHERE, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()"),
    for_root("raw socket", RAW, "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()"),
    for_root("packet socket", RAW, "socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()"),
    Door("Unix socket", WORKERS, "socket.socket(socket.AF_UNIX).close()"),
    Door("netlink socket", EVERYWHERE, "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()"),
    Door("virtual machine's socket", EVERYWHERE, "os.close(call('socket', 40, 1, 0))"),
    Door("pair of sockets", WORKERS, "[each.close() for each in socket.socketpair()]"),
    Door("pair of internet sockets", EVERYWHERE, "call('socketpair', 2, 1, 0, bytes(8))"),
    Door("TCP", Held(LS, LSN, LSN, LSN, X), "socket.socket().connect(('127.0.0.1', port))"),
    Door("UDP", Held(S, SN, SN, SN, X), "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))"),
    Door("listen on TCP", Held(LS, LS, LS, LS, LS), "socket.socket().bind(('127.0.0.1', 0))"),
    Door("abstract Unix socket", Held(LS, LSN, LSN, LSN, X), "socket.socket(socket.AF_UNIX).connect('\\0' + abstract)"),
    # Other processes.
    Door(
        "ptrace",
        Held(LS, LSN, LSN, LSN, X),
        "call('ptrace', 0x4206, victim, 0, 0)\nos.kill(victim, 9)\nos.waitpid(victim, 0)",
        as_root=True,
    ),
    Door(
        "read another's memory",
        Held(LS, LSN, LSN, LSN, X),
        "vector = ctypes.create_string_buffer(16)\n"
        "vector[0:8] = ctypes.addressof(vector).to_bytes(8, 'little')\n"
        "vector[8] = 8\n"
        "call('process_vm_readv', victim, vector, 1, vector, 1, 0)",
        as_root=True,
    ),
    Door("another's memory in /proc", Held(L, LN, LSN, LN, X), "opened(f'/proc/{victim}/mem')", as_root=True),
    Door("another's environment", Held(L, LN, LSN, LN, X), "open(f'/proc/{victim}/environ').read()", as_root=True),
    Door("another's descriptors", Held(L, LN, LS, L, X), "os.listdir(f'/proc/{victim}/fd')"),
    Door("another's command line", Held(L, LN, LS, L, X), "result = open(f'/proc/{victim}/cmdline').read()"),
    Door("signal another", SIGNAL, "os.kill(victim, 0)"),
    Door("kill another", Held(LS, LN, LS, LS, X), "os.kill(victim, 9)"),
    Door("signal its parent", Held(LS, LS, LS, LS), "os.kill(os.getppid(), 0)"),
    Door("signal everybody", SIGNAL, "os.killpg(os.getpgid(victim), 0)"),
    Door("hold another", OTHERS, "os.close(os.pidfd_open(victim))"),
    Door("take another's descriptor", EVERYWHERE, "call('pidfd_getfd', -1, 0, 0)"),
    Door("limit another", OTHERS, "call('prlimit64', victim, 4, 0, 0)"),
    Door("slow another", OTHERS, "os.setpriority(os.PRIO_PROCESS, victim, 19)", as_root=True),
    Door("slow a user", WORKERS, "past(errno.ESRCH, os.setpriority, os.PRIO_USER, 12345, 19)"),
    Door("its disk's turn", OTHERS, "call('ioprio_set', 1, victim, 0x6000)", as_root=True),
    Door("pin another", OTHERS, "os.sched_setaffinity(victim, os.sched_getaffinity(victim))", as_root=True),
    Door("schedule another", WORKERS, "call('sched_setattr', victim, 0, 0)"),
    Door("schedule another by the old way", OTHERS, "call('sched_setscheduler', victim, 0, bytes(4))", as_root=True),
    # The kernel.
    Door("user namespace", WORKERS, "call('unshare', 0)"),
    Door("enter a namespace", EVERYWHERE, "call('setns', -1, 0)"),
    Door("mount", WORKERS, "call('mount', 0, 0, 0, 0, 0)"),
    Door("change the root", WORKERS, "past(errno.ENOENT, os.chroot, '/nonexistent')"),
    Door("io_uring", EVERYWHERE, "call('io_uring_setup', 0, 0)"),
    Door("old asynchronous input", EVERYWHERE, "call('io_setup', 0, 0)"),
    Door("keyring", EVERYWHERE, "call('keyctl', 0, -3, 0)"),
    Door("add a key", EVERYWHERE, "call('add_key', 0, 0, 0, 0, -3)"),
    Door("kernel program", EVERYWHERE, "call('bpf', 9999, 0, 0)"),
    Door("performance counters", EVERYWHERE, "call('perf_event_open', 0, 0, -1, -1, 0)"),
    for_root("page faults", Held(S, SN, SN, SN, X), "call('userfaultfd', 1 << 30)"),
    Door("shared memory", EVERYWHERE, "call('shmget', 0, 0, 0)"),
    Door("message queue", EVERYWHERE, "past(errno.ENOENT, call, 'msgget', 77, 0)"),
    Door("semaphores", EVERYWHERE, "call('semget', 77, -1, 0)"),
    Door("named queue", EVERYWHERE, "call('mq_open', 0, 0, 0, 0)"),
    for_root("kernel's log", Held(S, SN, SN, SN, X), "call('syslog', 99, 0, 0)"),
    Door("another personality", EVERYWHERE, "call('personality', 0x0400000)"),
    # Its own locks and descriptors.
    Door("become dumpable", WORKERS, "kernel.prctl('PR_SET_DUMPABLE', 4, 0)"),
    Door("outlive its parent", WORKERS, "[kernel.prctl('PR_SET_PDEATHSIG', 1, signal) for signal in (0, 9)]"),
    Door("raise its own limits", WORKERS, "call('prlimit64', 0, 99, 0, 0)"),
    Door("owner of a pipe's signals", PIPE, "fcntl.fcntl(pipe, fcntl.F_SETOWN, 0)"),
    Door("signal of a pipe", PIPE, "fcntl.fcntl(pipe, fcntl.F_SETSIG, 0)"),
    Door("flags of a pipe", PIPE, "fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL))"),
    Door("size of a pipe", PIPE, "fcntl.fcntl(pipe, 1031, 65536)"),
    Door("lease", PIPE, "fcntl.fcntl(pipe, fcntl.F_SETLEASE, fcntl.F_UNLCK)"),
    Door("ask a descriptor", PIPE, "fcntl.ioctl(pipe, 0x541B, bytes(4))"),
    Door("write into a terminal", PIPE, "fcntl.ioctl(pipe, 0x5412, b'x')"),
    for_root("use a capability", WORKERS, "os.chroot('/')"),
    Door("another user", WORKERS, "os.setresuid(-1, -1, -1)"),
)

# --- a command that sees the machine ---------------------------------------------------------------------------------

OPEN: Final[Locks] = ()
_TO_LOOK: Final = (
    *("read", "read by a link in the root", "list", "list the top", "up from the root", "by /proc/self/root"),
    *("by /proc/self/fd", "change into a directory", "ask about a file", "read a link's text", "list attributes"),
    *("read the journal", "read the configuration", "read what was kept"),  # of somebody else's: ours are hidden
    *("execute what lies outside", "netlink socket", "another's descriptors", "another's command line"),
)
MACHINE: Final[Mapping[str, Locks]] = MappingProxyType(
    {
        **dict.fromkeys(_TO_LOOK, OPEN),
        **dict.fromkeys(("read by openat2", "the daemon's own socket", "UDP"), S),
        **dict.fromkeys(("TCP", "abstract Unix socket"), LS),
    }
)
"""What of the rows for commands is otherwise where they see the machine: open to look at, or held by other locks."""

_OF_OTHERS: Final = (
    *("environ", "mem", "maps", "smaps", "numa_maps", "auxv", "io", "stack", "syscall", "pagemap", "personality"),
)
_OF_ALL: Final = ("cmdline", "status", "limits", "cgroup")
"""Files of a process in /proc, those that are secret and those that are not."""

NETLINK: Final = """
import glob
def held(number):
    return [os.readlink(each) for each in glob.glob(f'/proc/{number}/fd/*')]
def told(protocol, kind, flags, body):
    asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    asked.bind((0, 0))
    asked.send(struct.pack('=IHHII', 16 + len(body), kind, flags | 5, 1, 0) + body)
    answer = asked.recv(65536)
    if struct.unpack_from('=H', answer, 4)[0] == 2 and (error := -struct.unpack_from('=i', answer, 16)[0]):
        raise OSError(error, 'said the kernel')
def invalid(deed, *given):
    try:
        return deed(*given)
    except OSError as error:
        raise ProcessLookupError(errno.ESRCH, 'not in these namespaces') if error.errno == errno.EINVAL else error
def some(content):
    if not content:
        raise FileNotFoundError(errno.ENOENT, 'covered')
"""

ON_THE_MACHINE: Final = (
    for_root("the key of TCP", Held(shell=X), "some(open('/proc/sys/net/ipv4/tcp_fastopen_key').read())"),
    *(
        Door(name, Held(shell=held), code)
        for name, held, code in (
            # What is hidden, and what is covered of the kernel's own files.
            ("a hidden file", X, "some(open('/etc/hostname').read())"),
            ("a hidden file by a descriptor", X, "some(os.read(os.open('hostname', 0, dir_fd=os.open('/etc', 0)), 1))"),
            ("a hidden file by /proc/self/root", X, "some(open('/proc/self/root/etc/hostname').read())"),
            ("a hidden file of another's root", X, "open(f'/proc/{victim}/root/etc/hostname').read()"),
            ("the machine's passwords", X, "some(open('/etc/shadow').read())"),
            ("what lies beneath a cover", X, "invalid(call, 'umount2', b'/etc/hostname', 2)"),
            ("the kernel's memory", X, "some(open('/proc/kcore', 'rb').read(1))"),
            ("a queue that is a file", S, "past(errno.EBADF, call, 'mq_timedreceive', -1, 0, 0, 0, 0)"),
            ("keys of others", X, "some(open('/proc/keys').read())"),
            ("firmware", X, "some(os.listdir('/sys/firmware'))"),
            ("the kernel's tracing", X, "some(os.listdir('/sys/kernel/tracing'))"),
            ("disks", X, "os.open(next('/dev/' + each for each in os.listdir('/sys/block')), os.O_RDONLY)"),
            ("terminals", X, "os.listdir('/dev/pts')"),
            ("sockets in /run", X, "os.stat('/run/dbus') and os.stat('/run/docker.sock')"),
            ("sockets in /tmp", X, "os.stat(path_in_tmp)"),
            # Settings of the machine, its processes and its control groups.
            ("a setting of the kernel", X, "opened('/proc/sys/kernel/core_pattern', os.O_WRONLY)"),
            ("a setting of memory", X, "opened('/sys/kernel/mm/transparent_hugepage/enabled', os.O_WRONLY)"),
            ("restart", X, "opened('/proc/sysrq-trigger', os.O_WRONLY)"),
            ("whom the kernel ends first", X, "opened(f'/proc/{victim}/oom_score_adj', os.O_WRONLY)"),
            ("another's name", X, "opened(f'/proc/{victim}/comm', os.O_WRONLY)"),
            ("a control group", X, "os.mkdir('/sys/fs/cgroup/strongroom-door')"),
            ("a file of the system", X, "opened('/etc/strongroom-door', os.O_WRONLY | os.O_CREAT)"),
            ("another's current directory", X, "os.readlink(f'/proc/{victim}/cwd')"),
            ("another's program", X, "os.readlink(f'/proc/{victim}/exe')"),
            ("another's open file", X, "os.readlink(f'/proc/{victim}/fd/0')"),
            ("another's namespaces", X, "opened(f'/proc/{victim}/ns/mnt')"),
            *((f"another's {name}", X, f"open(f'/proc/{{victim}}/{name}', 'rb').read(1)") for name in _OF_OTHERS),
            *(
                (f"another's {name}, for all to see", OPEN, f"open(f'/proc/{{victim}}/{name}').read()")
                for name in _OF_ALL
            ),
            ("who holds a socket", OPEN, "some([each for each in held(listener) if each.startswith('socket:[')])"),
            ("what it holds besides", X, "some([each for each in held(listener) if not each.startswith('socket:[')])"),
            ("a socket that another holds", X, "[opened(each) for each in glob.glob(f'/proc/{listener}/fd/*')]"),
            ("a socket among those that are held", X, "os.symlink('1', f'/proc/{listener}/fd/987')"),
            ("a FIFO", L, "opened(fifo, os.O_RDWR)"),
            ("a signal by /proc", X, "invalid(call, 'pidfd_send_signal', os.open(f'/proc/{victim}', 0), 0, 0, 0)"),
            ("everybody's processes", X, "os.kill(-victim, 0)"),
            # The machine's network.
            ("another protocol of netlink", S, "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15).close()"),
            ("the firewall", S, "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).close()"),
            ("an interface", X, "told(0, 16, 0, struct.pack('=BxHiII', 0, 0, 1, 0, 0xFFFFFFFF))"),
            (
                "an address",
                X,
                "told(0, 20, 0x600, struct.pack('=BBBBiHH4s', 2, 32, 0, 0, 1, 8, 2, bytes((10, 9, 8, 7))))",
            ),
            ("a route", X, "told(0, 25, 0, struct.pack('=8BI', 2, 0, 0, 0, 254, 4, 0, 1, 0))"),
            ("look at interfaces", OPEN, "told(0, 18, 0x300, bytes(16))"),
            ("a pair that sends to names", S, "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"),
            ("a name of its own", S, "socket.socketpair()[0].bind('\\0a name that somebody else wants')"),
            ("a lease on a file", S, "fcntl.fcntl(os.open(own, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)"),
        )
    ),
)
"""Besides. What the code finds more: `fifo`, `path_in_tmp`, `own`, a file of its user, `listener`, who has sockets."""

# --- a command that is shown a person's programs ---------------------------------------------------------------------

SHOWN_PLACES: Final = (
    *("bin", "apps/x/bin", "apps/x/lib", ".local/bin", ".local/share/pipx/venvs/t/lib", ".pyenv/versions/3.9/lib"),
    *(".nvm/versions/node/v22/lib", ".cargo/bin", ".rustup/toolchains", ".rustup/update-hashes", "conda/lib", "py/bin"),
    *(".asdf/installs/golang/1.22/go/bin", "n/node_modules", "leak/bin"),
)
"""Directories of a home. What the code finds: `home`, `root_path`; for changes `place`, and a `file` in it."""

OF_SHOWN_PLACES: Final = (
    ("run what lies in a bin", "execute(home + '/bin/mine')"),
    ("run what a link leads to", "execute(home + '/.local/bin/piped')"),
    ("run what a version manager has chosen", "execute(home + '/.pyenv/versions/3.9/bin/python3')"),
    ("run what a plugin has in a directory of its own", "execute(home + '/.asdf/installs/golang/1.22/go/bin/go')"),
    ("run an environment's base", "execute(root_path + '/.venv/bin/python3')"),
    ("run a program among packages", "execute(home + '/n/node_modules/.bin/p')"),
    ("run a program of the root's own", "execute(root_path + '/e/bin/own')"),
    ("read a library", "open(home + '/conda/lib/x').read()"),
    ("read what a package brings", "open(home + '/n/node_modules/p/x').read()"),
    ("read what rustup chooses by", "open(home + '/.rustup/settings.toml').read()"),
    ("list a toolchain", "os.listdir(home + '/.rustup/toolchains/stable-x86')"),
    ("read certificates", "opened('/etc' if 'BEGIN CERT' in open('/etc/strongroom/authorities.pem').read() else '/x')"),
)
"""What must be open."""

CHANGES_OF_SHOWN_PLACES: Final = (
    ("create", "open(place + '/new', 'x').close()"),
    ("write", "opened(file, os.O_WRONLY)"),
    ("truncate", "os.truncate(file, 0)"),
    ("make a directory", "os.mkdir(place + '/new')"),
    ("link", "os.symlink('/', place + '/new')"),
    ("remove", "os.unlink(file) if not os.path.isdir(file) else os.rename(file, file + 'x')"),
    ("move away", "os.rename(place, place + '-old')"),
    ("move in", "open('/tmp/goods', 'w').close()\nos.rename('/tmp/goods', place + '/goods')"),
    ("chmod", "os.chmod(place, 0o777)"),
    ("utime", "os.utime(place, (0, 0))"),
    ("attribute", "os.setxattr(place, 'user.mark', b'1')"),
    ("another name in the root", "os.link(file, root_path + '/linked')"),
    ("another name beside it", "os.link(root_path + '/e/bin/own', place + '/linked')"),
    ("write by a descriptor", "opened('new', os.O_WRONLY | os.O_CREAT, os.open(place, os.O_RDONLY))"),
    ("write by /proc/self/fd", "open(f'/proc/self/fd/{os.open(file, os.O_RDONLY)}', 'a').close()"),
    ("make it writable", "call('mount', 0, place.encode(), 0, 0x1020, 0)"),
)
"""What must be shut, in each of them."""

BESIDE_SHOWN_PLACES: Final = (
    ("a token of a prefix", "open(home + '/apps/x/etc/token').read()"),
    ("settings of npm in a prefix", "open(home + '/apps/x/.npmrc').read()"),
    ("settings of npm beside a node", "open(home + '/.nvm/versions/node/v22/etc/npmrc').read()"),
    ("settings of npm beside packages", "open(home + '/n/.npmrc').read()"),
    ("settings of pip of an environment", "open(home + '/.local/share/pipx/venvs/t/pip.conf').read()"),
    ("settings of pip of a version", "open(home + '/.pyenv/versions/3.9/pip.conf').read()"),
    ("settings of pip of a base", "open(home + '/py/pip.conf').read()"),
    ("a token of conda", "open(home + '/conda/.condarc').read()"),
    ("addresses of conda's channels", "open(home + '/conda/conda-meta/x').read()"),
    ("settings of cargo", "open(home + '/.cargo/config.toml').read()"),
    ("what else rustup keeps", "open(home + '/.rustup/secret').read()"),
    ("what else a plugin keeps", "open(home + '/.asdf/installs/golang/1.22/credentials').read()"),
    ("a key beside a certificate", "open(home + '/both.pem').read()"),
    (
        "a key among certificates",
        "opened('/etc' if 'PRIV' in open('/etc/strongroom/authorities.pem').read() else '/x')",
    ),
    ("up from a bin", "open(home + '/bin/../.netrc').read()"),
    ("up from a descriptor", "opened('../.netrc', at=os.open(home + '/bin', os.O_RDONLY))"),
    ("up by /proc/self/fd", "at = os.open(home + '/bin', 0)\nopen(f'/proc/self/fd/{at}/../.netrc').read()"),
    ("up by /proc/self/root", "open('/proc/self/root' + home + '/.netrc').read()"),
    ("up by the current directory", "os.chdir(home + '/conda/lib')\nopen('../../.netrc').read()"),
    ("a link in a bin", "open(home + '/leak/bin/link').read()"),
    ("a link of a bin to a directory", "os.listdir(home + '/leak/bin/up')"),
    ("a link in the root", "os.listdir(root_path + '/hole')"),
    ("a link that is made", "os.symlink(home + '/.netrc', root_path + '/made')\nopen(root_path + '/made').read()"),
    ("another name of a secret", "open(home + '/work/linked').read()"),
    ("a new name of a secret", "os.link(home + '/.netrc', root_path + '/linked')"),
    ("what an environment leads to", "os.symlink(home + '/.ssh', '.venv/lib')\nos.listdir('.venv/lib')"),
    ("keys in a listing", "opened(home if '.ssh' in os.listdir(home) else '/x')"),
    ("where the sandbox was built", "os.listdir('/proc/' + home)"),
    ("what is mounted", "open([x.split()[3] for x in open('/proc/self/mountinfo') if '/bin ' in x][0] + '/../.netrc')"),
)
"""What must be shut: it is not there."""
