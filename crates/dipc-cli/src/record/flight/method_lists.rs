//! The runtime's lists of its methods, whole.

use dipc_client::Target;

use super::segment::Segment;
use crate::record::live_names::{ListPiece, LiveNames};

/// The most bytes of a list of methods.
const MOST: u64 = 64 << 20;

/// Lists of methods as they come.
#[derive(Debug)]
pub(super) struct MethodLists {
    live: LiveNames,
    /// The last whole one.
    pub(super) last: Option<Segment>,
    arriving: Segment,
    /// The number of lists that have ended.
    pub(super) count: u64,
}

impl MethodLists {
    /// Has the runtime list its methods. With `needs_help` it is made to tell of each method that it compiles.
    pub(super) fn start(target: &Target, needs_help: bool, is_starting: bool) -> Self {
        let live = LiveNames::start(target, needs_help, is_starting);
        Self { live, last: None, arriving: Segment::default(), count: 0 }
    }

    /// Asks for another list, if that is not too early.
    pub(super) fn request_again(&mut self) {
        self.live.request_again();
    }

    /// Asks for another list. Whether one is to be expected.
    pub(super) fn request_now(&mut self) -> bool {
        self.live.request_now() || self.last.is_none()
    }

    /// Takes what has arrived of a list. One that ended in the middle replaces no whole one.
    pub(super) fn read(&mut self) {
        while let Some(piece) = self.live.next_piece() {
            match piece {
                ListPiece::Bytes(bytes) => {
                    if self.arriving.bytes() < MOST {
                        self.arriving.push_in_memory(&bytes);
                    }
                }
                ListPiece::End => {
                    let list = std::mem::take(&mut self.arriving);
                    self.count += 1;
                    if self.last.is_none() || is_whole(&list) {
                        self.last = Some(list);
                    }
                }
            }
        }
    }
}

/// Whether a recording has its end.
fn is_whole(segment: &Segment) -> bool {
    segment.read().is_ok_and(|mut events| events.for_each(|_| {}).is_ok() && events.truncated_at().is_none())
}
