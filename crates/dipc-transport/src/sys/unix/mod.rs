//! Sockets of all Unixes. `linux` and `darwin` have the differences: credentials of the peer, long paths, and
//! processes.

mod acceptor;
mod connect;
mod rights;
mod socket_path;
mod stream;
mod watcher;

#[cfg(target_vendor = "apple")]
mod darwin;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_vendor = "apple")]
use darwin as platform;
#[cfg(target_os = "linux")]
use linux as platform;

pub(crate) use acceptor::{Acceptor, ListeningSocket};
pub(crate) use connect::connect;
pub(crate) use platform::{FolderBelow, open_regular, open_untrusted};
pub(crate) use platform::{NamespaceView, Process, SocketFile, SocketLocation, process_ids, process_state};
pub(crate) use rights::ReceivedRights;
pub(crate) use stream::{Socket, Stream};
pub(crate) use watcher::Watcher;

pub(crate) fn effective_uid() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

/// Has a link at the end of a path refused, and a pipe opened without waiting.
pub(crate) fn refuse_links(options: &mut std::fs::OpenOptions) {
    use rustix::fs::OFlags;

    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed());
}

/// Returns true if the file has more names than one.
pub(crate) fn has_other_names(file: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(file) > 1
}

/// Closes a file and returns the error.
pub(crate) fn close(file: std::fs::File) -> std::io::Result<()> {
    let descriptor = std::os::fd::IntoRawFd::into_raw_fd(file);
    // SAFETY: the file gave up its descriptor, so that nothing else uses or closes it.
    match unsafe { libc::close(descriptor) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Returns the soft and the hard limit on open descriptors.
pub(crate) fn descriptor_limits() -> Option<(Option<u64>, Option<u64>)> {
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    Some((limits.current, limits.maximum))
}

pub(crate) fn set_descriptor_limit(current: u64, maximum: Option<u64>) -> std::io::Result<()> {
    let limits = rustix::process::Rlimit { current: Some(current), maximum };
    Ok(rustix::process::setrlimit(rustix::process::Resource::Nofile, limits)?)
}

pub(crate) fn limit_child_descriptors(
    command: &mut std::process::Command,
    current: u64,
    maximum: Option<u64>,
) {
    let limits = rustix::process::Rlimit { current: Some(current), maximum };
    let set = move || Ok(rustix::process::setrlimit(rustix::process::Resource::Nofile, limits)?);
    // SAFETY: between `fork` and `exec` the closure makes one system call. It takes no locks and allocates
    // nothing, even if the call fails: the error is a number.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, set) };
}
