//! From one block to the next: through the whole stream, over damage, to its end.

use super::{Engine, State, Step};
use crate::error::Error;
use crate::raw::{BlockKind, Frame, Layout, ScanResult, fast_serialization, v6};

/// Bytes that are kept while looking for the next block: more than the longest type takes.
const OBJECT_TYPE: usize = 512;

/// The outcome of looking for the next block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Located {
    /// A block, and whether the recording ends inside it.
    Block(Frame, bool),
    /// An event block that is left unread, of which the first bytes are there.
    #[cfg(feature = "std")]
    Unread(Frame),
    /// Something to report.
    Step(Step),
    /// Neither, but the state has changed: the next call gets further.
    Moved,
}

impl Engine {
    /// Reads the next item of the stream; an event block stays open.
    pub(super) fn step(&mut self, bytes: &[u8], end: bool) -> Result<Option<Step>, Error> {
        Ok(match self.locate(bytes, end)? {
            Located::Block(frame, cut) => self.read_block(bytes, frame, cut),
            Located::Step(step) => Some(step),
            #[cfg(feature = "std")]
            Located::Unread(_) => None,
            Located::Moved => None,
        })
    }

    /// Looks for the next block.
    pub(super) fn locate(&mut self, bytes: &[u8], end: bool) -> Result<Located, Error> {
        if let Some(block) = self.unseen
            && let Some(step) = self.pass_unseen(bytes, end, block)
        {
            return Ok(Located::Step(step));
        }
        Ok(match self.state {
            State::Start => self.start(bytes, end)?.map_or(Located::Moved, Located::Step),
            State::Objects => self.object(bytes, end),
            State::Blocks => self.v6_block(bytes, end),
            State::Flat => self.netperf_event(bytes, end),
            State::Resync { since, what } => self.resync(bytes, end, since, what),
            State::AfterEnd { since, end: end_of_end } => self.after_end(bytes, end, since, end_of_end),
            State::Ended { trailing } => Located::Step(self.ended(bytes, end, trailing)),
            State::Cut => Located::Step(Step::End),
        })
    }

    /// Locates the object at `self.at`.
    fn object(&mut self, bytes: &[u8], end: bool) -> Located {
        let (object, data) = match fast_serialization::item(bytes, self.at) {
            ScanResult::Found(fast_serialization::Item::Object(object, data)) => (object, data),
            ScanResult::Found(fast_serialization::Item::Null) => {
                return self.end_stream(self.at.saturating_add(1));
            }
            ScanResult::NeedMore(more) => return self.need(more, end),
            ScanResult::Invalid(what) => return self.start_resync(self.at.saturating_add(1), what),
        };
        let position = self.base.wrapping_add(self.shift);
        let mut frame = match fast_serialization::frame(bytes, object.kind(), data, position) {
            ScanResult::Found(frame) => frame,
            ScanResult::NeedMore(more) => return self.need(more, end),
            ScanResult::Invalid(what) => return self.start_resync(data, what),
        };
        if let Some(located) = self.skip(bytes, end, &frame) {
            return located;
        }
        #[cfg(feature = "std")]
        if self.leaves_unread(&frame) {
            return Located::Unread(frame);
        }
        let cut = frame.next > bytes.len();
        if cut && !end {
            return Located::Step(Step::NeedMore(frame.next.saturating_sub(bytes.len())));
        }
        // A wrong size hides the blocks after it. A block inside the range shows that the size is wrong.
        if cut && fast_serialization::next_block(bytes, data).is_some() {
            return self.start_resync(data, "block that is larger than the rest of the recording");
        }
        if !cut && fast_serialization::ends_at(bytes, frame.end) != Some(true) {
            let known = frame.next.saturating_add(fast_serialization::PADDINGS);
            if known > bytes.len() && !end {
                return Located::Step(Step::NeedMore(known.saturating_sub(bytes.len())));
            }
            let Some(padded) = fast_serialization::frame_of_any_padding(bytes, frame, data) else {
                return self.start_resync(data, "block without its end tag");
            };
            let what = "padding that shows that bytes before it are missing";
            self.tables.damaged(self.offset(self.at), 0, what);
            let further = padded.start.wrapping_sub(frame.start) as u64;
            self.shift = self.shift.wrapping_sub(further);
            frame = padded;
        }
        if object.is_newer() {
            self.tables.damaged(self.offset(self.at), 0, "block that only a newer reader can read");
        }
        Located::Block(frame, cut)
    }

    /// Locates the block of V6 at `self.at`.
    fn v6_block(&mut self, bytes: &[u8], end: bool) -> Located {
        let frame = match v6::item(bytes, self.at) {
            ScanResult::Found(v6::Item::End(frame)) => {
                self.state = State::AfterEnd { since: self.offset(self.at), end: self.offset(frame.next) };
                self.at = frame.start;
                return Located::Moved;
            }
            ScanResult::Found(v6::Item::Block(frame) | v6::Item::Trace(frame)) => frame,
            ScanResult::NeedMore(more) => return self.need(more, end),
            ScanResult::Invalid(what) => return self.start_resync(self.at.saturating_add(1), what),
        };
        if let Some(located) = self.skip(bytes, end, &frame) {
            return located;
        }
        #[cfg(feature = "std")]
        if self.leaves_unread(&frame) {
            return Located::Unread(frame);
        }
        let cut = frame.next > bytes.len();
        if cut && !end {
            return Located::Step(Step::NeedMore(frame.next.saturating_sub(bytes.len())));
        }
        if !cut && frame.kind != BlockKind::Unknown {
            return self.v6_block_with_size(bytes, end, frame);
        }
        // A wrong size hides the blocks after it. Blocks inside the range show that the size is wrong.
        let mut what = "block that is larger than the rest of the recording";
        let mut is_doubtful = cut;
        if !cut {
            what = "block of an unknown kind that hides others";
            match v6::begin_blocks(bytes, frame.next, 1, end) {
                ScanResult::Found(()) => {}
                ScanResult::NeedMore(more) => return Located::Step(Step::NeedMore(more)),
                ScanResult::Invalid(_) => is_doubtful = true,
            }
        }
        let within = bytes.get(..frame.next).unwrap_or(bytes);
        if is_doubtful
            && matches!(v6::hidden_block(within, frame.start, within.len(), true), (_, ScanResult::Found(())))
        {
            return self.start_resync(frame.start, what);
        }
        Located::Block(frame, cut)
    }

    /// Checks the size of a block of V6 that is there: where no block follows it, others within it show that
    /// it is too large.
    fn v6_block_with_size(&mut self, bytes: &[u8], end: bool, frame: Frame) -> Located {
        #[cfg(feature = "std")]
        let ahead = self.bytes_ahead(bytes);
        #[cfg(not(feature = "std"))]
        let ahead = 0;
        match v6::is_followed(bytes, frame.next, end, ahead) {
            ScanResult::Found(()) => return Located::Block(frame, false),
            // Its events must not wait for a block that a runtime without events writes much later.
            ScanResult::NeedMore(_) if !self.has_lookahead => return Located::Block(frame, false),
            ScanResult::NeedMore(more) => return Located::Step(Step::NeedMore(more)),
            ScanResult::Invalid(_) => {}
        }
        let looked = usize::try_from(self.looked_through.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let (at, found) = v6::hidden_block(bytes, looked.max(frame.start), frame.next, end);
        self.looked_through = self.offset(at);
        match found {
            ScanResult::Found(()) => {
                self.tables.damaged(self.offset(self.at), 0, "block of a size that hides others");
                Located::Block(Frame { end: at, next: at, ..frame }, false)
            }
            ScanResult::NeedMore(more) => Located::Step(Step::NeedMore(more)),
            ScanResult::Invalid(_) => Located::Block(frame, false),
        }
    }

    /// Locates the event of netperf V1 or V2 at `self.at`: a block of its own.
    fn netperf_event(&mut self, bytes: &[u8], end: bool) -> Located {
        match fast_serialization::is_netperf_tail(bytes, self.at, self.base) {
            ScanResult::Found(true) => {
                return self.end_stream(self.at.saturating_add(fast_serialization::NETPERF_TAIL_SIZE));
            }
            ScanResult::NeedMore(more) => return self.need(more, end),
            ScanResult::Found(false) | ScanResult::Invalid(_) => {}
        }
        match fast_serialization::netperf_event(bytes, self.at) {
            ScanResult::Found(frame) if frame.next > bytes.len() => {
                self.need(frame.next.saturating_sub(bytes.len()), end)
            }
            ScanResult::Found(frame) => Located::Block(frame, false),
            ScanResult::NeedMore(more) => self.need(more, end),
            ScanResult::Invalid(what) => self.start_resync(self.at.saturating_add(1), what),
        }
    }

    /// Asks for more bytes, or ends the recording if the input is complete.
    fn need(&mut self, more: usize, end: bool) -> Located {
        Located::Step(if end { self.cut(self.at) } else { Step::NeedMore(more) })
    }

    /// Takes the end of the stream, which ends at `at`.
    fn end_stream(&mut self, at: usize) -> Located {
        self.at = at;
        self.state = State::Ended { trailing: 0 };
        Located::Moved
    }

    /// Starts looking for the next block from `from` on: the bytes at `self.at` are damaged.
    fn start_resync(&mut self, from: usize, what: &'static str) -> Located {
        self.state = State::Resync { since: self.offset(self.at), what };
        self.at = from;
        Located::Moved
    }

    /// Looks for the next block after damage.
    fn resync(&mut self, bytes: &[u8], end: bool, since: u64, what: &'static str) -> Located {
        let is_flat = self.tables.info.as_ref().is_some_and(|info| info.version < 3);
        let is_v6 = self.layout == Layout::V6;
        let found = if is_v6 {
            let (at, found) = v6::next_block(bytes, self.at, end);
            self.at = at;
            match found {
                ScanResult::Found(()) => Some(at),
                ScanResult::NeedMore(more) => return Located::Step(Step::NeedMore(more)),
                ScanResult::Invalid(_) => None,
            }
        } else if is_flat {
            None
        } else {
            fast_serialization::next_block(bytes, self.at)
        };
        if let Some(at) = found {
            self.tables.damaged(since, self.offset(at).saturating_sub(since), what);
            self.at = at;
            self.state = if is_v6 { State::Blocks } else { State::Objects };
            return Located::Moved;
        }
        if end {
            self.tables.damaged(since, self.offset(bytes.len()).saturating_sub(since), what);
            return Located::Step(self.cut(bytes.len()));
        }
        self.at = self.at.max(bytes.len().saturating_sub(OBJECT_TYPE));
        Located::Step(Step::NeedMore(1))
    }

    /// Looks for blocks after the end of a V6 stream, unless another recording begins there.
    fn after_end(&mut self, bytes: &[u8], end: bool, since: u64, end_of_end: u64) -> Located {
        // Once these bytes are dropped, no other recording was found in them.
        if let Some(after_end) = end_of_end.checked_sub(self.base) {
            let after_end = usize::try_from(after_end).unwrap_or(usize::MAX);
            let known = after_end.saturating_add(fast_serialization::NETTRACE.len());
            if known > bytes.len() && !end {
                return Located::Step(Step::NeedMore(known.saturating_sub(bytes.len())));
            }
            if bytes.get(after_end..known) == Some(fast_serialization::NETTRACE) {
                return self.end_stream(after_end);
            }
        }
        let (at, found) = v6::next_block(bytes, self.at, end);
        self.at = at;
        match found {
            ScanResult::Found(()) => {
                let what = "end of the stream that blocks follow";
                self.tables.damaged(since, self.offset(at).saturating_sub(since), what);
                self.state = State::Blocks;
                return Located::Moved;
            }
            ScanResult::NeedMore(more) => return Located::Step(Step::NeedMore(more)),
            ScanResult::Invalid(_) => {}
        }
        self.at = bytes.len();
        let Some(trailing) = self.offset(self.at).checked_sub(end_of_end) else {
            self.tables.truncated_at = self.tables.truncated_at.or(Some(since));
            self.state = State::Cut;
            return Located::Step(Step::End);
        };
        self.state = State::Ended { trailing };
        Located::Moved
    }

    /// Counts the bytes after the end of the stream.
    fn ended(&mut self, bytes: &[u8], end: bool, trailing: u64) -> Step {
        let trailing = trailing.saturating_add(bytes.len().saturating_sub(self.at) as u64);
        self.at = bytes.len();
        self.state = State::Ended { trailing };
        if !end {
            return Step::NeedMore(1);
        }
        if trailing > 0 {
            let offset = self.offset(bytes.len()).saturating_sub(trailing);
            self.tables.damaged(offset, trailing, "bytes after the end of the stream");
            self.state = State::Ended { trailing: 0 };
        }
        Step::End
    }
}
