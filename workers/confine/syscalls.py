"""Numbers of the system calls that we name, on the two machines that we know: data only.

Rule: a row is a name and its numbers on x86_64 and aarch64, - where the machine has no such call. The table lists what
some allowlist permits and what the probe and the tests try; everything else needs no name to be refused. Sources:
arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NEWEST: Final = 469
"""The highest number that existed when this list was made (file_setattr, Linux 6.17); the same on both
machines."""

_CALLS: Final = """
    accept 43 202, accept4 288 242, access 21 -, acct 163 89, add_key 248 217, adjtimex 159 171,
    arch_prctl 158 -, bind 49 200, bpf 321 280, brk 12 214, capget 125 90, capset 126 91, chdir 80 49,
    chmod 90 -, chown 92 -, chroot 161 51, clock_adjtime 305 266, clock_gettime 228 113,
    clock_nanosleep 230 115, clock_settime 227 112, clone 56 220, clone3 435 435, close 3 57,
    close_range 436 436, connect 42 203, copy_file_range 326 285, creat 85 -, delete_module 176 106, dup 32 23,
    dup2 33 -, dup3 292 24, execve 59 221, execveat 322 281, exit 60 93, exit_group 231 94, faccessat 269 48,
    faccessat2 439 439, fallocate 285 47, fanotify_init 300 262, fchdir 81 50, fchmod 91 52, fchmodat 268 53,
    fchmodat2 452 452, fchown 93 55, fchownat 260 54, fcntl 72 25, fdatasync 75 83, fgetxattr 193 10,
    file_setattr 469 469, finit_module 313 273, flistxattr 196 13, flock 73 32, fork 57 -, fremovexattr 199 16,
    fsconfig 431 431, fsetxattr 190 7, fsmount 432 432, fsopen 430 430, fspick 433 433, fstat 5 80, fsync 74 82,
    ftruncate 77 46, futex 202 98, futimesat 261 -, getcwd 79 17, getdents64 217 61, getegid 108 177,
    geteuid 107 175, getgid 104 176, getpeername 52 205, getpid 39 172, getppid 110 173, getrandom 318 278,
    getsockname 51 204, getsockopt 55 209, gettid 186 178, getuid 102 174, init_module 175 105,
    inotify_add_watch 254 27, inotify_init1 294 26, io_setup 206 0, io_uring_enter 426 426,
    io_uring_register 427 427, io_uring_setup 425 425, ioctl 16 29, ioperm 173 -, iopl 172 -, ioprio_get 252 31,
    ioprio_set 251 30, kcmp 312 272, kexec_file_load 320 294, kexec_load 246 104, keyctl 250 219, kill 62 129,
    landlock_add_rule 445 445, landlock_create_ruleset 444 444, landlock_restrict_self 446 446, lchown 94 -,
    link 86 -, linkat 265 37, listen 50 201, listmount 458 458, lookup_dcookie 212 18, lremovexattr 198 15,
    lseek 8 62, lsetxattr 189 6, lstat 6 -, madvise 28 233, memfd_create 319 279, memfd_secret 447 447,
    migrate_pages 256 238, mkdir 83 -, mkdirat 258 34, mknod 133 -, mknodat 259 33, mmap 9 222,
    modify_ldt 154 -, mount 165 40, mount_setattr 442 442, move_mount 429 429, move_pages 279 239,
    mprotect 10 226, mq_getsetattr 245 185, mq_notify 244 184, mq_open 240 180, mq_timedreceive 243 183,
    mq_timedsend 242 182, mremap 25 216, msgget 68 186, munmap 11 215, name_to_handle_at 303 264,
    newfstatat 262 79, open 2 -, open_by_handle_at 304 265, open_tree 428 428, open_tree_attr 467 467,
    openat 257 56, openat2 437 437, perf_event_open 298 241, personality 135 92, pidfd_getfd 438 438,
    pidfd_open 434 434, pidfd_send_signal 424 424, pipe2 293 59, pivot_root 155 41, pkey_mprotect 329 288,
    poll 7 -, ppoll 271 73, prctl 157 167, pread64 17 67, preadv 295 69, prlimit64 302 261,
    process_madvise 440 440, process_mrelease 448 448, process_vm_readv 310 270, process_vm_writev 311 271,
    ptrace 101 117, pwrite64 18 68, pwritev 296 70, quotactl 179 60, quotactl_fd 443 443, read 0 63,
    readlinkat 267 78, readv 19 65, reboot 169 142, recvfrom 45 207, recvmmsg 299 243, recvmsg 47 212,
    removexattr 197 14, removexattrat 466 466, rename 82 -, renameat 264 38, renameat2 316 276,
    request_key 249 218, restart_syscall 219 128, rmdir 84 -, rseq 334 293, rt_sigaction 13 134,
    rt_sigprocmask 14 135, rt_sigreturn 15 139, sched_getaffinity 204 123, sched_setaffinity 203 122,
    sched_setattr 314 274, sched_setparam 142 118, sched_setscheduler 144 119, sched_yield 24 124,
    seccomp 317 277, semget 64 190, sendfile 40 71, sendmmsg 307 269, sendmsg 46 211, sendto 44 206,
    set_robust_list 273 99, set_tid_address 218 96, setdomainname 171 162, sethostname 170 161,
    setitimer 38 103, setns 308 268, setpriority 141 140, setresuid 117 147, setsockopt 54 208,
    settimeofday 164 170, setuid 105 146, setxattr 188 5, setxattrat 463 463, shmat 30 196, shmctl 31 195,
    shmget 29 194, shutdown 48 210, sigaltstack 131 132, socket 41 198, socketpair 53 199, splice 275 76,
    stat 4 -, statmount 457 457, statx 332 291, swapoff 168 225, swapon 167 224, symlink 88 -, symlinkat 266 36,
    syncfs 306 267, sysfs 139 -, syslog 103 116, tgkill 234 131, truncate 76 45, umask 95 166, umount2 166 39,
    unlink 87 -, unlinkat 263 35, unshare 272 97, uselib 134 -, userfaultfd 323 282, ustat 136 -, utime 132 -,
    utimensat 280 88, utimes 235 -, vfork 58 -, vhangup 153 58, wait4 61 260, write 1 64, writev 20 66
"""

_ROWS: Final = tuple(row.split() for row in _CALLS.split(","))

NUMBERS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {
        machine: MappingProxyType({row[0]: int(row[at]) for row in _ROWS if row[at] != "-"})
        for at, machine in ((1, "x86_64"), (2, "aarch64"))
    }
)
"""Machine, as platform.machine() names it -> name -> number."""
