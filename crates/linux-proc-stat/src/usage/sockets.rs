//! The sockets of a process: `/proc/PID/net/tcp` and `tcp6`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;

use super::Files;
use super::tcp_table::{Socket, TcpState};

/// Maximum number of bytes of a table to read: some 100,000 connections.
const MAX_TABLE: u64 = 16 << 20;
/// Maximum number of peers to count.
const MAX_PEERS: usize = 4096;
/// Maximum number of peers in [`Sockets::peers`].
const MAX_MOST_CONNECTED: usize = 10;

/// The sockets of a process by state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
    /// The peers that the process has connected to, at most ten, with the most connections first. Connections
    /// to its own listening ports are the peers' and not among them. Of more than 4,096 peers, only the first
    /// are counted.
    pub peers: Vec<Peer>,
    /// Connections in the state `TIME_WAIT` in the network namespace; they belong to no process any more.
    pub time_wait: u64,
}

/// The connections of a process to one address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Peer {
    /// The address of the peer. Addresses of version 4 in sockets of version 6 are of version 4.
    pub address: SocketAddr,
    /// The number of connections by state.
    pub states: BTreeMap<TcpState, u64>,
}

impl Peer {
    /// Returns the number of connections.
    pub fn count(&self) -> u64 {
        total(&self.states)
    }
}

fn total(states: &BTreeMap<TcpState, u64>) -> u64 {
    states.values().fold(0, |sum, &number| sum.saturating_add(number))
}

impl Sockets {
    /// Finds the sockets of these inodes in the tables of a folder `net`; `None` if it has no tables.
    pub(super) fn read(net: &Path, inodes: &HashSet<u64>, files: &mut Files) -> Option<Self> {
        let mut sockets = Self::default();
        let mut connections = Connections::default();
        let mut has_table = false;
        for name in ["tcp", "tcp6"] {
            let path = net.join(name);
            has_table |= files.kept(&path, sockets.read_table(&path, inodes, &mut connections)).is_some();
        }
        let found = total(&sockets.tcp);
        sockets.other = u64::try_from(inodes.len()).unwrap_or(u64::MAX).saturating_sub(found);
        sockets.peers = connections.peers();
        has_table.then_some(sockets)
    }

    fn read_table(
        &mut self,
        path: &Path,
        inodes: &HashSet<u64>,
        connections: &mut Connections,
    ) -> io::Result<()> {
        let mut table = BufReader::with_capacity(64 << 10, File::open(path)?.take(MAX_TABLE));
        let mut line = Vec::new();
        while table.read_until(b'\n', &mut line)? > 0 {
            if let Some(socket) = std::str::from_utf8(&line).ok().and_then(Socket::parse)
                && self.add(&socket, inodes)
            {
                connections.add(&socket);
            }
            line.clear();
        }
        Ok(())
    }

    /// Returns true if it is a socket of the process.
    fn add(&mut self, socket: &Socket, inodes: &HashSet<u64>) -> bool {
        if socket.state == TcpState::TimeWait {
            self.time_wait = self.time_wait.saturating_add(1);
        }
        if !inodes.contains(&socket.inode) {
            return false;
        }
        let number = self.tcp.entry(socket.state).or_default();
        *number = number.saturating_add(1);
        if socket.state == TcpState::Listen {
            self.unaccepted = self.unaccepted.saturating_add(socket.received);
        } else {
            self.unread_bytes = self.unread_bytes.saturating_add(socket.received);
            self.unsent_bytes = self.unsent_bytes.saturating_add(socket.sent);
        }
        true
    }
}

/// The connections of a process by peer.
#[derive(Debug, Default)]
struct Connections {
    /// Local ports. The kernel lists listening sockets before connections.
    listening: HashSet<u16>,
    peers: HashMap<SocketAddr, BTreeMap<TcpState, u64>>,
}

impl Connections {
    fn add(&mut self, socket: &Socket) {
        if socket.state == TcpState::Listen {
            self.listening.insert(socket.local.port());
        } else if !self.listening.contains(&socket.local.port()) && socket.remote.port() != 0 {
            let is_full = self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&socket.remote);
            if !is_full {
                let number = self.peers.entry(socket.remote).or_default().entry(socket.state).or_default();
                *number = number.saturating_add(1);
            }
        }
    }

    fn peers(self) -> Vec<Peer> {
        let mut peers: Vec<_> =
            self.peers.into_iter().map(|(address, states)| Peer { address, states }).collect();
        peers.sort_by(|one, other| {
            other.count().cmp(&one.count()).then_with(|| one.address.cmp(&other.address))
        });
        peers.truncate(MAX_MOST_CONNECTED);
        peers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::TestTree;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    /// A socket with a local port, to 127.0.0.1:8080.
    fn socket(port: &str, state: &str, queues: &str, inode: &str) -> String {
        format!(
            "   0: 0100007F:{port} 0100007F:1F90 {state} {queues} 00:00000000 00000000     0        0 {inode} 1\n"
        )
    }

    fn line(state: &str, queues: &str, inode: &str) -> String {
        socket("9C40", state, queues, inode)
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
    #[cfg(target_endian = "little")]
    fn peers_are_those_that_the_process_connects_to() {
        let queues = "00000000:00000000";
        let tcp = [
            // It listens at port 80, and has a client.
            socket("0050", "0A", queues, "1"),
            socket("0050", "01", queues, "2"),
            socket("9C40", "02", queues, "3"),
            socket("9C41", "02", queues, "4"),
            socket("9C42", "01", queues, "5"),
            socket("9C43", "01", queues, "99"),
        ];
        let other = "0: 0100007F:9C44 0200007F:0035 08 00000000:00000000 00:00000000 00000000 0 0 6 1\n";
        let tree = TestTree::new("sockets-peers", &[("tcp", &(tcp.concat() + other))]);
        let peers = read(&tree, &[1, 2, 3, 4, 5, 6]).0.unwrap().peers;
        let peers: Vec<_> =
            peers.iter().map(|peer| (peer.address.to_string(), peer.states.clone())).collect();
        let first = [(TcpState::Established, 1), (TcpState::SynSent, 2)].into();
        let second = [(TcpState::CloseWait, 1)].into();
        assert_eq!(peers, [("127.0.0.1:8080".into(), first), ("127.0.0.2:53".into(), second)]);
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
