//! Work in queues, and its requests.

use std::collections::VecDeque;

use crate::bounded_map::BoundedMap;
use crate::span::SpanId;
use crate::step::WorkId;
use crate::time_parts::QueueMark;

/// A request, and the mark from [`WorkState::enqueue`](crate::time_parts::WorkState::enqueue).
type Queued = Option<(SpanId, QueueMark)>;

/// Work that is queued and has not begun. Its numbers are hash codes that may be reused while they wait:
/// first in, first out.
#[derive(Debug, Default)]
pub(crate) struct Queue(BoundedMap<(Option<u64>, WorkId), VecDeque<Queued>>);

/// Maximum number of pieces of work with one number.
const MAX_ITEMS: usize = 8;

impl Queue {
    pub(crate) fn push(&mut self, key: (Option<u64>, WorkId), queued: Queued) {
        match self.0.get_mut(&key) {
            Some(waiting) => {
                if waiting.len() >= MAX_ITEMS {
                    waiting.pop_front();
                }
                waiting.push_back(queued);
            }
            None => self.0.insert(key, VecDeque::from([queued])),
        }
    }

    /// The oldest work with that number; the outer option is `None` without such work.
    #[allow(clippy::option_option, reason = "work that is queued for no request")]
    pub(crate) fn pop(&mut self, key: (Option<u64>, WorkId)) -> Option<Queued> {
        let waiting = self.0.get_mut(&key)?;
        let oldest = waiting.pop_front();
        if waiting.is_empty() {
            self.0.remove(&key);
        }
        oldest
    }
}
