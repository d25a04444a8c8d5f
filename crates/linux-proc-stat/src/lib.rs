//! Processes and threads in Linux's `/proc`.
//!
//! **Use it** to read the state, times and memory of processes, threads and control groups, whatever their
//! names are. **Not for** lists of processes with names, users and sockets (`procfs` and `sysinfo` have
//! those), and other systems.
//!
//! Features: none. Rust 1.89 or later.
//!
//! [`Stat`], [`SchedStat`] and [`Status`] parse the files of these names. A process chooses its own name,
//! which may have parentheses, spaces, line feeds and bytes that are not UTF-8: none of them moves or hides
//! another field. A field that a kernel lacks is `None`, and fields that are not requested are not parsed.
//!
//! ```
//! use linux_proc_stat::Stat;
//!
//! let stat = Stat::parse(b"4711 (a) R (b) S 1 4711 4711 0").expect("a line of stat");
//! assert_eq!((stat.name(), stat.state()), (&b"a) R (b"[..], Some('S')));
//! ```
//!
//! [`read`] reads any file of `/proc`. The parsers work on all systems, and read nothing.
//!
//! [`ControlGroup`] finds the control groups of a process, and reads their memory and processor time.
//!
//! # Source
//! `proc_pid_stat(5)`, `proc_pid_status(5)`, `cgroups(7)`, and `Documentation/scheduler/sched-stats.rst`,
//! `admin-guide/cgroup-v2.rst` and `admin-guide/cgroup-v1/memory.rst` of Linux.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::arithmetic_side_effects,
        clippy::as_conversions
    )
)]

mod cgroup;
mod file;
mod schedstat;
mod stat;
mod status;

pub use cgroup::{ControlGroup, GroupCpu, GroupMemory};
pub use file::{process_folder, process_ids, read, thread_folder};
pub use schedstat::SchedStat;
pub use stat::{Stat, TICK_NS};
pub use status::Status;
