//! Core dumps that are written: of processes, and copies without contents.

pub(crate) mod core_writer;
pub(crate) mod kept;
#[cfg(target_os = "linux")]
pub(crate) mod pieces;
#[cfg(target_os = "linux")]
pub(crate) mod process;
pub(crate) mod strip;
#[cfg(target_os = "linux")]
pub(crate) mod thread_pages;
