//! The sockets of a process: `/proc/PID/net/tcp` and `tcp6`.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use super::Files;

/// Maximum number of bytes of a table to read: 110,000 connections.
const MAX_TABLE: u64 = 16 << 20;

/// The sockets of a process by state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sockets {
    /// The TCP sockets by state.
    pub tcp: BTreeMap<TcpState, u64>,
    /// Sockets that are not in the tables: of other kinds, or not connected yet.
    pub other: u64,
    /// Connections that wait to be accepted, of all its listening sockets.
    pub unaccepted: u64,
    /// Bytes that have arrived and that the process has not read.
    pub unread_bytes: u64,
    /// Bytes that the process has sent and that the peers have not acknowledged.
    pub unsent_bytes: u64,
    /// Connections in the state `TIME_WAIT` in the network namespace; they belong to no process any more.
    pub time_wait: u64,
}

/// The state of a TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TcpState {
    /// Connected.
    Established,
    /// Connecting: the peer has not answered.
    SynSent,
    /// Being connected by a peer.
    SynReceived,
    /// Closed here, not acknowledged.
    FinWait1,
    /// Closed here, not by the peer.
    FinWait2,
    /// Closed on both ends.
    TimeWait,
    /// Not connected.
    Close,
    /// Closed by the peer, not here.
    CloseWait,
    /// Closed by the peer and here, not acknowledged.
    LastAck,
    /// Listening.
    Listen,
    /// Closed on both ends at once, not acknowledged.
    Closing,
}

impl TcpState {
    /// Returns the name as `ss` and `netstat` print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Established => "ESTABLISHED",
            Self::SynSent => "SYN_SENT",
            Self::SynReceived => "SYN_RECV",
            Self::FinWait1 => "FIN_WAIT1",
            Self::FinWait2 => "FIN_WAIT2",
            Self::TimeWait => "TIME_WAIT",
            Self::Close => "CLOSE",
            Self::CloseWait => "CLOSE_WAIT",
            Self::LastAck => "LAST_ACK",
            Self::Listen => "LISTEN",
            Self::Closing => "CLOSING",
        }
    }

    const fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Established,
            2 => Self::SynSent,
            // 12 is a request that is not yet a whole socket.
            3 | 12 => Self::SynReceived,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            6 => Self::TimeWait,
            7 => Self::Close,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            10 => Self::Listen,
            11 => Self::Closing,
            _ => return None,
        })
    }
}

impl Sockets {
    /// Finds the sockets of these inodes in the tables of a folder `net`; `None` if it has no tables.
    pub(super) fn read(net: &Path, inodes: &HashSet<u64>, files: &mut Files) -> Option<Self> {
        let mut sockets = Self::default();
        let mut has_table = false;
        for name in ["tcp", "tcp6"] {
            let path = net.join(name);
            has_table |= files.kept(&path, sockets.read_table(&path, inodes)).is_some();
        }
        let found = sockets.tcp.values().fold(0_u64, |sum, &number| sum.saturating_add(number));
        sockets.other = u64::try_from(inodes.len()).unwrap_or(u64::MAX).saturating_sub(found);
        has_table.then_some(sockets)
    }

    fn read_table(&mut self, path: &Path, inodes: &HashSet<u64>) -> io::Result<()> {
        let mut table = BufReader::with_capacity(64 << 10, File::open(path)?.take(MAX_TABLE));
        let mut line = Vec::new();
        while table.read_until(b'\n', &mut line)? > 0 {
            if let Some(socket) = std::str::from_utf8(&line).ok().and_then(Socket::parse) {
                self.add(&socket, inodes);
            }
            line.clear();
        }
        Ok(())
    }

    fn add(&mut self, socket: &Socket, inodes: &HashSet<u64>) {
        if socket.state == TcpState::TimeWait {
            self.time_wait = self.time_wait.saturating_add(1);
        }
        if !inodes.contains(&socket.inode) {
            return;
        }
        let number = self.tcp.entry(socket.state).or_default();
        *number = number.saturating_add(1);
        if socket.state == TcpState::Listen {
            self.unaccepted = self.unaccepted.saturating_add(socket.received);
        } else {
            self.unread_bytes = self.unread_bytes.saturating_add(socket.received);
            self.unsent_bytes = self.unsent_bytes.saturating_add(socket.sent);
        }
    }
}

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Socket {
    state: TcpState,
    sent: u64,
    /// The number of connections for a listening socket.
    received: u64,
    inode: u64,
}

impl Socket {
    /// Parses `0: LOCAL REMOTE STATE SENT:RECEIVED TIMER:WHEN RETRIES USER TIMEOUT INODE …`.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().skip(3);
        let state = TcpState::of(u8::from_str_radix(fields.next()?, 16).ok()?)?;
        let (sent, received) = fields.next()?.split_once(':')?;
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Self { state, sent: hex(sent)?, received: hex(received)?, inode: fields.nth(4)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::TestTree;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn line(state: &str, queues: &str, inode: &str) -> String {
        format!(
            "   0: 0100007F:07E8 0100007F:1F90 {state} {queues} 00:00000000 00000000     0        0 {inode} 1 0\n"
        )
    }

    fn read(tree: &TestTree, inodes: &[u64]) -> (Option<Sockets>, usize) {
        let mut files = Files { deadline: None, unread: Vec::new() };
        let sockets = Sockets::read(tree.path(), &inodes.iter().copied().collect(), &mut files);
        (sockets, files.unread.len())
    }

    #[test]
    fn sockets_of_the_process_are_counted_by_state() {
        let tcp = [
            HEAD,
            &line("0A", "00000000:00000005", "11"),
            &line("01", "00000010:00000020", "12"),
            &line("08", "00000000:00000001", "13"),
            &line("02", "00000001:00000000", "14"),
            // Of another process, and of none.
            &line("01", "0000FFFF:0000FFFF", "99"),
            &line("06", "00000000:00000000", "0"),
        ];
        let tree = TestTree::new(
            "sockets",
            &[("tcp", &tcp.concat()), ("tcp6", &line("01", "00000000:00000000", "15"))],
        );
        let (sockets, unread) = read(&tree, &[11, 12, 13, 14, 15, 16, 17]);
        let sockets = sockets.unwrap();
        let expected = [
            (TcpState::Established, 2),
            (TcpState::SynSent, 1),
            (TcpState::CloseWait, 1),
            (TcpState::Listen, 1),
        ];
        assert_eq!((sockets.tcp, sockets.other, unread), (BTreeMap::from(expected), 2, 0));
        assert_eq!((sockets.unaccepted, sockets.unread_bytes, sockets.unsent_bytes), (5, 33, 17));
        assert_eq!(sockets.time_wait, 1);
    }

    #[test]
    fn broken_lines_are_left_out() {
        let good = line("01", "00000000:00000000", "7");
        for text in [
            HEAD.to_owned(),
            line("0D", "00000000:00000000", "7"),
            line("FFF", "00000000:00000000", "7"),
            line("01", "00000000", "7"),
            line("01", "x:y", "7"),
            line("01", "00000000:00000000", "-7"),
            good.split_at(60).0.to_owned(),
            "\n\n \n".into(),
        ] {
            let tree = TestTree::new("sockets-broken", &[("tcp6", &format!("{text}\n{good}"))]);
            let (sockets, unread) = read(&tree, &[7]);
            assert_eq!(
                (sockets.unwrap().tcp, unread),
                (BTreeMap::from([(TcpState::Established, 1)]), 1),
                "{text}"
            );
        }
        assert_eq!(read(&TestTree::new("sockets-none", &[]), &[7]), (None, 2));
    }
}
