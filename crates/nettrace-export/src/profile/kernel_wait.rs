//! Waits by the functions of the kernel in which threads left the processors.

use std::fmt;

/// The module of the kernel's functions.
const KERNEL: &str = "vmlinux";

/// The kind of a wait in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KernelWait {
    /// Locks, conditions and events of threads.
    Futex,
    /// A sleep for a time.
    Sleep,
    /// Any of several descriptors.
    Poll,
    /// Data of a socket, or a connection.
    Socket,
    /// Data of a pipe, or room in it.
    Pipe,
    /// Data of a file.
    File,
    /// Input of a terminal, or room for output.
    Terminal,
    /// A child process.
    Child,
    /// Events of a descriptor for events, times, signals or changed files, or a signal.
    Event,
    /// Memory that has to be made available first.
    PageFault,
    /// A lock of the kernel.
    KernelLock,
    /// The end of a stop by a signal or a debugger.
    Stop,
}

/// Beginnings of the names of the functions in which threads wait.
const WAITS: [(KernelWait, &[&str]); 12] = [
    (KernelWait::Futex, &["futex_", "__futex_", "do_futex"]),
    (KernelWait::Sleep, &["do_nanosleep", "hrtimer_nanosleep", "common_nsleep"]),
    (
        KernelWait::Poll,
        &["ep_poll", "do_epoll_", "do_sys_poll", "do_poll", "poll_schedule_", "do_select", "core_sys_select"],
    ),
    (
        KernelWait::Socket,
        &[
            "unix_", "tcp_", "udp_", "inet_", "inet6_", "sk_wait_", "__skb_", "skb_", "sock_", "netlink_",
            "vsock_",
        ],
    ),
    (KernelWait::Pipe, &["pipe_", "anon_pipe_", "fifo_", "wait_for_partner"]),
    (
        KernelWait::File,
        &[
            "folio_",
            "filemap_",
            "wait_on_page",
            "wait_on_buffer",
            "bit_wait_io",
            "blk_",
            "jbd2_",
            "ext4_",
            "xfs_",
            "btrfs_",
            "nfs_",
            "fuse_",
            "file_write_and_wait",
        ],
    ),
    (KernelWait::Terminal, &["n_tty_", "tty_"]),
    (KernelWait::Child, &["do_wait", "kernel_wait", "__do_wait"]),
    (
        KernelWait::Event,
        &["eventfd_", "timerfd_", "signalfd_", "inotify_", "do_sigtimedwait", "sigsuspend", "__do_sys_pause"],
    ),
    (
        KernelWait::KernelLock,
        &["rwsem_", "down_read", "down_write", "__mutex_lock", "mutex_lock", "percpu_rwsem_"],
    ),
    (
        KernelWait::PageFault,
        &["exc_page_fault", "do_user_addr_fault", "handle_mm_fault", "__handle_mm_fault", "do_swap_page"],
    ),
    (KernelWait::Stop, &["do_signal_stop", "ptrace_stop", "get_signal"]),
];

/// Beginnings of the names of the functions that switch threads, or return to a thread that was preempted,
/// also at the end of a system call.
const SWITCHES: [&str; 17] = [
    "schedule_timeout",
    "schedule_hrtimeout",
    "schedule_preempt_disabled",
    "io_schedule",
    "preempt_schedule",
    "dynamic_preempt_schedule",
    "finish_task_switch",
    "irqentry_exit",
    "raw_irqentry_exit",
    "exit_to_user_mode",
    "irqentry_exit_to_user_mode",
    "asm_sysvec_",
    "sysvec_",
    "el0_interrupt",
    "syscall_exit_",
    "entry_SYSCALL_64",
    "ret_from_fork",
];

/// Whole names of such functions.
const WHOLE_SWITCHES: [&str; 8] = [
    "schedule",
    "__schedule",
    "__cond_resched",
    "_cond_resched",
    "dynamic_cond_resched",
    "__switch_to_asm",
    "do_syscall_64",
    "x64_sys_call",
];

/// Returns the kernel function of a frame, given its module and name, without the suffix of a part that the
/// compiler split off.
fn function<'n>((module, name): (&str, &'n str)) -> Option<&'n str> {
    let (function, _) = name.split_once('.').unwrap_or((name, ""));
    (module == KERNEL).then_some(function)
}

/// Returns true if a frame, given its module and name, is a function through which every thread leaves a
/// processor: it says nothing about the wait.
pub(crate) fn is_switch(frame: (&str, &str)) -> bool {
    function(frame).is_some_and(|function| {
        WHOLE_SWITCHES.contains(&function) || SWITCHES.iter().any(|start| function.starts_with(start))
    })
}

impl KernelWait {
    /// Returns the kind of wait of a frame, given its module and name; `None` for other functions.
    pub(crate) fn of(frame: (&str, &str)) -> Option<Self> {
        let function = function(frame)?;
        let is_it = |starts: &[&str]| starts.iter().any(|start| function.starts_with(start));
        WAITS.iter().find(|(_, starts)| is_it(starts)).map(|(kind, _)| *kind)
    }

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Futex => "locks and events (futex)",
            Self::Sleep => "sleep",
            Self::Poll => "poll",
            Self::Socket => "sockets",
            Self::Pipe => "pipes",
            Self::File => "files",
            Self::Terminal => "the terminal",
            Self::Child => "child processes",
            Self::Event => "event descriptors and signals",
            Self::PageFault => "page faults",
            Self::KernelLock => "locks of the kernel",
            Self::Stop => "stopped by a signal",
        }
    }
}

impl fmt::Display for KernelWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_functions_determine_the_kind_of_a_wait() {
        for (name, kind) in [
            ("futex_wait_queue", Some(KernelWait::Futex)),
            ("__futex_wait", Some(KernelWait::Futex)),
            ("do_nanosleep", Some(KernelWait::Sleep)),
            ("ep_poll", Some(KernelWait::Poll)),
            ("anon_pipe_read", Some(KernelWait::Pipe)),
            ("unix_stream_read_generic", Some(KernelWait::Socket)),
            ("folio_wait_bit_common", Some(KernelWait::File)),
            ("do_wait", Some(KernelWait::Child)),
            ("rwsem_down_read_slowpath", Some(KernelWait::KernelLock)),
            ("exc_page_fault", Some(KernelWait::PageFault)),
            ("do_syscall_64", None),
            ("schedule", None),
        ] {
            assert_eq!(KernelWait::of((KERNEL, name)), kind, "{name}");
            assert_eq!(KernelWait::of(("libc.so.6", name)), None, "{name}");
        }
    }

    #[test]
    fn the_scheduler_is_not_a_wait() {
        for name in [
            "schedule",
            "__schedule",
            "schedule_timeout",
            "schedule_hrtimeout_range_clock",
            "io_schedule",
            "finish_task_switch.isra.0",
            "irqentry_exit_to_user_mode",
            "asm_sysvec_apic_timer_interrupt",
            "__cond_resched",
            "do_syscall_64",
        ] {
            assert!(is_switch((KERNEL, name)), "{name}");
            assert!(!is_switch(("libc.so.6", name)), "{name}");
        }
        for name in ["do_nanosleep", "futex_wait", "schedule_work_on", "?", "__x64_sys_futex"] {
            assert!(!is_switch((KERNEL, name)), "{name}");
        }
    }
}
