//! The lines of `/proc/PID/net/tcp` and `tcp6`.

use std::net::{IpAddr, SocketAddr};

/// The state of a TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) state: TcpState,
    pub(super) sent: u64,
    /// The number of connections for a listening socket.
    pub(super) received: u64,
    pub(super) inode: u64,
}

impl Socket {
    /// Parses `0: LOCAL REMOTE STATE SENT:RECEIVED TIMER:WHEN RETRIES USER TIMEOUT INODE …`.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (parse_address(fields.next()?)?, parse_address(fields.next()?)?);
        let state = TcpState::of(u8::from_str_radix(fields.next()?, 16).ok()?)?;
        let (sent, received) = fields.next()?.split_once(':')?;
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Self {
            local,
            remote,
            state,
            sent: hex(sent)?,
            received: hex(received)?,
            inode: fields.nth(4)?.parse().ok()?,
        })
    }
}

/// Parses `0100007F:1F90`: words of four bytes in the order of the machine, and the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let mut bytes = [0; 16];
    let (words, _) = bytes.as_chunks_mut::<4>();
    let count = address.len().checked_div(8).filter(|count| count.checked_mul(8) == Some(address.len()))?;
    for (index, word) in words.iter_mut().take(count).enumerate() {
        let start = index.checked_mul(8)?;
        let digits = address.get(start..start.checked_add(8)?)?;
        *word = u32::from_str_radix(digits, 16).ok()?.to_ne_bytes();
    }
    let address = match count {
        1 => IpAddr::from(*words.first()?),
        4 => IpAddr::from(bytes).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn addresses_are_in_words_of_the_machine() {
        let parse = |text| parse_address(text).map(|address| address.to_string());
        assert_eq!(parse("0100007F:1F90").as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(parse("0000000000000000FFFF00000100007F:0050").as_deref(), Some("127.0.0.1:80"));
        assert_eq!(
            parse("B80D01200000000067452301EFCDAB89:01BB").as_deref(),
            Some("[2001:db8::123:4567:89ab:cdef]:443")
        );
        for text in [
            "",
            ":",
            "0100007F",
            "0100007F:",
            "0100007F:10000",
            "01007F:1",
            "0100007F0100007F:1",
            "x100007F:1",
            "\u{fc}00007\u{fc}:1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
