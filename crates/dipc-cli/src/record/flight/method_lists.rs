//! Complete lists of the runtime's methods.

use dipc_client::{ListPiece, LiveNames, Target};
use nettrace_edit::Segment;

use crate::record::names::live_names;

/// Maximum number of bytes of a list of methods.
const MAX_LIST_SIZE: u64 = 64 << 20;

/// Lists of methods, received while the recording runs.
#[derive(Debug)]
pub(super) struct MethodLists {
    live: LiveNames,
    /// The last complete list.
    pub(super) last: Option<Segment>,
    arriving: Segment,
    /// The number of lists that have ended.
    pub(super) count: u64,
}

impl MethodLists {
    /// Makes the runtime list its methods. With `needs_help`, it is also made to report each method that it
    /// compiles.
    pub(super) fn start(target: &Target, needs_help: bool, is_starting: bool) -> Self {
        let live = live_names(target, needs_help, is_starting);
        Self { live, last: None, arriving: Segment::default(), count: 0 }
    }

    /// Requests another list, unless it is too early.
    pub(super) fn request_again(&mut self) {
        self.live.request_again();
    }

    /// Requests another list. Returns whether one can be expected.
    pub(super) fn request_now(&mut self) -> bool {
        self.live.request_now() || self.last.is_none()
    }

    /// Takes the part of a list that has arrived.
    pub(super) fn read(&mut self) {
        while let Some(piece) = self.live.next_piece() {
            match piece {
                ListPiece::Bytes(bytes) if self.arriving.bytes() < MAX_LIST_SIZE => {
                    self.arriving.push(&bytes);
                }
                ListPiece::End => {
                    let list = std::mem::take(&mut self.arriving);
                    self.count += 1;
                    replace(&mut self.last, list);
                }
                _ => {}
            }
        }
    }
}

/// Replaces the last list. A truncated list does not replace a complete one, and an unreadable list replaces
/// nothing.
fn replace(last: &mut Option<Segment>, next: Segment) {
    let is_whole = next.read().and_then(|mut events| {
        events.for_each(|_| {})?;
        Ok(events.truncated_at().is_none())
    });
    if is_whole.is_ok_and(|is_whole| is_whole || last.is_none()) {
        *last = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::flight::test_stream::TestStream;

    impl MethodLists {
        /// The lists of a process that became unreachable after this one.
        pub(in crate::record::flight) fn with_last(target: &Target, list: &[u8]) -> Self {
            let mut lists = Self::start(target, false, false);
            lists.last.insert(Segment::default()).push(list);
            lists
        }
    }

    #[test]
    fn complete_lists_replace_a_list() {
        let mut stream = TestStream::new();
        let (first, second, end) = (stream.name(10), stream.name(10), stream.end());
        let list = |pieces: &[&[u8]]| {
            let mut list = Segment::default();
            for piece in pieces {
                list.push(piece);
            }
            list
        };
        let mut stored = None;
        for (pieces, expected) in [
            (&[][..], None),
            (&[&b"Nettrace"[..]], None),
            (&[&first], Some(first.len())),
            (&[&first, &second], Some(first.len())),
            (&[&first, &second, &end], Some(first.len() + second.len() + end.len())),
            (&[], Some(first.len() + second.len() + end.len())),
        ] {
            replace(&mut stored, list(pieces));
            assert_eq!(stored.as_ref().map(Segment::bytes), expected.map(|bytes| bytes as u64), "{pieces:?}");
        }
    }
}
