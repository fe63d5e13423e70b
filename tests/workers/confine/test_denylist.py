"""The deny-list's assembler, by running its programs with the interpreter of the allowlist's tests."""

import errno
from collections.abc import Callable
from functools import partial

import pytest

from tests.each_row import each_row
from tests.workers.confine.test_seccomp import Case, decide, decided
from workers.confine.command_policy import ON_THE_ROOT_ITSELF, SHELL, WITH_A_NETWORK
from workers.confine.denylist import Deny, Has, Is, IsNot, Notify, assemble
from workers.confine.seccomp import ALLOW, ARCHITECTURES, ENOSYS, EPERM, KILL, NOTIFY
from workers.confine.syscalls import NUMBERS

EXDEV = 0x00050000 | errno.EXDEV
HIGH = 2**32

ROWS = (
    Notify("mount"),
    Deny("mount"),
    Notify("openat", (Is(0, (0xFFFFFF9C,)), Has(2, 3))),
    Deny("openat", (Has(2, 0x40),)),
    Deny("ioctl", (Is(1, (0x5412, 0x541C, 7)),)),
    Deny("socket", (IsNot(0, (1, 3)),)),
    Deny("clone", (Has(0, 0x30000000),)),
    Deny("renameat2", (Is(0, (5, 6)), IsNot(1, (8, 9)), Has(4, 6)), errno.EXDEV),
    Deny("setpriority", (IsNot(0, (0,)),)),
    Deny("setpriority", (Is(1, (1,)),), errno.EXDEV),
)


CASES = [
    Case("a call that no row names", "read", (1, 2, 3), ALLOW),
    Case("a row without conditions", "mount", (), EPERM),
    Case("the first of the values", "ioctl", (0, 0x5412), EPERM),
    Case("the middle one", "ioctl", (0, 0x541C), EPERM),
    Case("the last one", "ioctl", (0, 7), EPERM),
    Case("another value", "ioctl", (0, 8), ALLOW),
    Case("a value, and more in the high half, which the kernel does not read", "ioctl", (0, 0x5412 + HIGH), EPERM),
    Case("none of the others", "socket", (2,), EPERM),
    Case("the first of the others", "socket", (1,), ALLOW),
    Case("the last of the others", "socket", (3,), ALLOW),
    Case("none of the others, and more in the high half", "socket", (2 + HIGH,), EPERM),
    Case("one of the bits", "clone", (0x10000011,), EPERM),
    Case("all of them", "clone", (0x30000000,), EPERM),
    Case("none of them", "clone", (0x01200011,), ALLOW),
    Case("a bit, and more in the high half", "clone", (0x10000000 + HIGH,), EPERM),
    Case("all conditions", "renameat2", (5, 7, 0, 0, 2), EXDEV),
    Case("all conditions, the other way", "renameat2", (6, 1, 0, 0, 4), EXDEV),
    Case("not the first condition", "renameat2", (7, 7, 0, 0, 2), ALLOW),
    Case("not the second condition", "renameat2", (5, 8, 0, 0, 2), ALLOW),
    Case("not the second condition, its last value", "renameat2", (5, 9, 0, 0, 2), ALLOW),
    Case("not the third condition", "renameat2", (5, 7, 0, 0, 1), ALLOW),
    Case("what is told", "openat", (2**64 - 100, 0, 1), NOTIFY),
    Case("what is told, and more in the high half", "openat", (0xFFFFFF9C, 0, 2 + HIGH), NOTIFY),
    Case("what is denied is not told", "openat", (2**64 - 100, 0, 0x41), EPERM),
    Case("what is not told", "openat", (3, 0, 1), ALLOW),
    Case("the first row of a call", "setpriority", (2, 0), EPERM),
    Case("its second row", "setpriority", (0, 1), EXDEV),
    Case("neither of its rows", "setpriority", (0, 2), ALLOW),
    Case("a call whose flags stand in memory", "clone3", (), ENOSYS),
]


@each_row("case", CASES, ids=[case.name for case in CASES])
def test_the_filter_decides(case: Case, machine: str) -> None:
    assert decided(assemble(ROWS, machine), machine, case.call, *case.arguments) == case.verdict


Verdict = Callable[..., int]


@pytest.fixture
def verdict(machine: str) -> Verdict:
    """What the filter of commands decides about a call."""
    return partial(decided, assemble(SHELL.denies, machine), machine)


STOPPED = """
    acct add_key adjtimex bpf chroot clock_adjtime clock_settime clone3 delete_module fanotify_init
    finit_module fsconfig fsmount fsopen fspick init_module io_setup io_uring_enter io_uring_register io_uring_setup
    ioperm iopl kcmp kexec_file_load kexec_load keyctl listmount lookup_dcookie memfd_secret migrate_pages
    mq_timedsend mq_timedreceive mq_notify mq_getsetattr
    modify_ldt mount mount_setattr move_mount move_pages mq_open msgget name_to_handle_at open_by_handle_at
    open_tree open_tree_attr openat2 perf_event_open pidfd_getfd pivot_root process_madvise process_mrelease
    process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot request_key semget setdomainname
    sethostname setns settimeofday shmat shmctl shmget statmount swapoff swapon sysfs syslog umount2 unshare
    uselib userfaultfd ustat vhangup
"""
"""What commands may never ask for, said a second time: a row that is gone from the list is missed here."""


def test_each_call_that_commands_may_not_make_is_stopped(machine: str) -> None:
    program = assemble(SHELL.denies, machine)
    without_arguments = {
        call
        for call, number in NUMBERS[machine].items()
        if decide(program, ARCHITECTURES[machine], number, *[1 << 20] * 6) not in (ALLOW, KILL)
    }
    conditional = {"socket", "socketpair", "clone", "ioprio_set", "setpriority", "personality"}
    assert without_arguments - conditional == {call for call in STOPPED.split() if call in NUMBERS[machine]}


NAMESPACES = [1 << bit for bit in (17, 25, 26, 27, 28, 29, 30)]


def test_commands_make_processes_and_threads_but_no_namespace_by_clone(verdict: Verdict) -> None:
    assert {verdict("clone", flag | 0x01200011) for flag in NAMESPACES} == {EPERM}
    assert {verdict("clone", flags) for flags in (0x01200011, 0x003D0F00, 0x11)} == {ALLOW}


@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_commands_have_sockets_of_this_machine_alone(call: str, verdict: Verdict) -> None:
    assert [family for family in range(50) if verdict(call, family) == ALLOW] == [1]


INTERNET = [
    ((2, 1, 6), ALLOW),
    ((2, 1, 0), ALLOW),
    ((10, 2 | 0x80800, 17), ALLOW),
    ((2, 3, 0), EPERM),
    ((10, 3 | 0x80000, 6), EPERM),
    ((2, 5, 0), EPERM),
    ((2, 1, 262), EPERM),
    ((2, 1, 132), EPERM),
    ((10, 2, 58), EPERM),
    ((1, 5, 0), ALLOW),
    ((16, 3 | 0x80000, 0), ALLOW),
    ((16, 3, 4), ALLOW),
    ((16, 3, 12), EPERM),
    ((16, 2, 15), EPERM),
]


@each_row(("arguments", "verdict"), INTERNET)
def test_commands_with_a_network_have_tcp_and_udp_alone(arguments: tuple[int, ...], verdict: int, machine: str) -> None:
    assert decided(assemble(WITH_A_NETWORK, machine), machine, "socket", *arguments) == verdict


@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_on_the_root_itself_no_socket_can_be_given_an_address_later(call: str, machine: str, verdict: Verdict) -> None:
    on_the_root = partial(decided, assemble((*SHELL.denies, *ON_THE_ROOT_ITSELF), machine), machine)
    kinds = {
        kind
        for kind in range(11)
        for flags in (0, 0x800, 0x80000, 0x80800)
        if on_the_root(call, 1, kind | flags) == ALLOW
    }
    assert kinds == {1, 5}
    assert (on_the_root("connect"), verdict("connect")) == (EPERM, ALLOW)


MODES = {1: ("chmod", "fchmod", "creat", "mknod"), 2: ("fchmodat", "fchmodat2", "open", "mknodat"), 3: ("openat",)}
"""Which argument of which calls is a mode."""


@pytest.mark.parametrize(("call", "argument"), [(call, at) for at, calls in MODES.items() for call in calls])
def test_commands_make_no_program_that_runs_as_its_owner(
    call: str, argument: int, machine: str, verdict: Verdict
) -> None:
    if call not in NUMBERS[machine]:
        pytest.skip(f"{machine} has no {call}")
    for modes, expected in (((0o4755, 0o2755, 0o6755), EPERM), ((0o755, 0o1777, 0o644), ALLOW)):
        for mode in modes:
            arguments = [0x40] * 6  # O_CREAT, where it stands for flags
            arguments[argument] = mode
            assert verdict(call, *arguments) == expected


def test_a_mode_counts_only_where_something_is_made(verdict: Verdict) -> None:
    assert {verdict("openat", 0, 0, flags, 0o4755) for flags in (0x40, 0x410000, 0x2 | 0x40)} == {EPERM}
    assert {verdict("openat", 0, 0, flags, 0o4755) for flags in (0, 0x1, 0x10000, 0x80000)} == {ALLOW}


@pytest.mark.parametrize("call", ["prlimit64", "sched_setaffinity", "sched_setattr"])
def test_commands_let_the_worker_alone(call: str, verdict: Verdict) -> None:
    assert [verdict(call, pid) for pid in (0, 1, 2)] == [ALLOW, EPERM, ALLOW]


LET_ALONE = [
    ("sched_setscheduler", (1,), EPERM),
    ("sched_setparam", (1,), EPERM),
    ("setpriority", (0, 1), EPERM),
    ("setpriority", (1, 2), EPERM),
    ("setpriority", (2, 0), EPERM),
    ("setpriority", (0, 2), ALLOW),
    ("ioprio_set", (1, 1), EPERM),
    ("ioprio_set", (2, 2), EPERM),
    ("ioprio_set", (3, 0), EPERM),
    ("ioprio_set", (1, 2), ALLOW),
    ("mknod", (0, 0o020600), EPERM),
    ("mknod", (0, 0o060600), EPERM),
    ("mknod", (0, 0o010600), ALLOW),
    ("mknodat", (0, 0, 0o020600), EPERM),
    ("mknodat", (0, 0, 0o060600), EPERM),
    ("mknodat", (0, 0, 0o010600), ALLOW),
    ("renameat2", (0, 0, 0, 0, 4), EPERM),
    ("renameat2", (0, 0, 0, 0, 5), EPERM),
    ("renameat2", (0, 0, 0, 0, 4 + HIGH), EPERM),
    ("renameat2", (0, 0, 0, 0, 0), ALLOW),
    ("renameat2", (0, 0, 0, 0, 1), ALLOW),
    ("renameat2", (0, 0, 0, 0, 2), ALLOW),
    ("io_setup", (128,), ENOSYS),
]


@pytest.mark.parametrize(("call", "arguments", "expected"), LET_ALONE)
def test_commands_slow_no_other_and_make_no_device(
    call: str, arguments: tuple[int, ...], expected: int, machine: str, verdict: Verdict
) -> None:
    if call not in NUMBERS[machine]:
        pytest.skip(f"{machine} has no {call}")
    assert verdict(call, *arguments) == expected


def test_the_program_fits_into_the_kernel(machine: str) -> None:
    assert len(assemble(SHELL.denies, machine)) < 4096
