//! `/proc/PID/net/unix`: the sockets of a network namespace, by the path at which each was bound, and their
//! accepted connections. A socket stays in the list when its file is removed.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Maximum size of a list that is read, in bytes.
const LIMIT: u64 = 32 << 20;

/// A socket that was bound to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnixSocket {
    /// The path, as the process that bound it sees its files.
    pub(crate) path: PathBuf,
    /// True if it listens; otherwise it is an accepted connection of such a socket.
    pub(crate) listens: bool,
}

/// Reads the sockets of a process's network namespace; none if the system does not show them.
pub(super) fn read(pid: u32) -> Vec<UnixSocket> {
    let mut bytes = Vec::new();
    let result =
        File::open(format!("/proc/{pid}/net/unix")).and_then(|file| file.take(LIMIT).read_to_end(&mut bytes));
    match result {
        Ok(_) => String::from_utf8_lossy(&bytes).lines().skip(1).filter_map(parse).collect(),
        Err(_) => Vec::new(),
    }
}

/// Parses `Num RefCount Protocol Flags Type St Inode Path`; only the path may hold spaces.
pub(super) fn parse(line: &str) -> Option<UnixSocket> {
    const LISTENS: u32 = 0x0001_0000;
    const FLAGS: usize = 3;
    let (mut rest, mut flags) = (line, 0);
    for column in 0..7 {
        let (word, after) = rest.trim_start().split_once(' ')?;
        if column == FLAGS {
            flags = u32::from_str_radix(word, 16).ok()?;
        }
        rest = after;
    }
    // Sockets of the abstract namespace begin with '@' and do not have a file.
    let path = Path::new(rest).to_path_buf();
    (!rest.is_empty() && !rest.starts_with('@')).then_some(UnixSocket { path, listens: flags & LISTENS != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let listening = "000000002d5d9584: 00000002 00000000 00010000 0001 01 3659875 /tmp/a b/x-socket";
        assert_eq!(parse(listening), Some(UnixSocket { path: "/tmp/a b/x-socket".into(), listens: true }));
        let connected = "00000000b91f03b1: 00000003 00000000 00000000 0001 03   197 /tmp/x";
        assert_eq!(parse(connected), Some(UnixSocket { path: "/tmp/x".into(), listens: false }));
        for other in [
            "00000000b91f03b1: 00000003 00000000 00000000 0001 03 3805197",
            "00000000b91f03b1: 00000002 00000000 00010000 0001 01 12 @/abstract",
            "",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
