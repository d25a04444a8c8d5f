//! A queue of requests to send, bounded by dropping the oldest.

use std::collections::VecDeque;
use std::time::Duration;

use clr_counters::otlp::Request;
use dipc_collect::RetryWait;

use super::RequestCount;

/// Maximum number of bytes in the queue.
pub(super) const MAX_BYTES: usize = 16 << 20;
/// The waits before a request is sent again.
const RETRY: RetryWait = RetryWait::new(Duration::from_secs(1), Duration::from_secs(30));

/// The queued requests, oldest first.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: VecDeque<Request>,
    bytes: usize,
    retry: RetryWait,
    pub(super) sent: RequestCount,
    pub(super) dropped: RequestCount,
}

impl Default for Queue {
    fn default() -> Self {
        let (sent, dropped) = (RequestCount::default(), RequestCount::default());
        Self { waiting: VecDeque::new(), bytes: 0, retry: RETRY, sent, dropped }
    }
}

impl Queue {
    /// Adds a request. If the queue then holds too many bytes, the oldest are dropped.
    pub(super) fn add(&mut self, request: Request) {
        self.bytes += request.bytes.len();
        self.waiting.push_back(request);
        self.drop_excess();
    }

    /// The bytes of the requests.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn drop_excess(&mut self) {
        while self.bytes > MAX_BYTES
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.bytes -= oldest.bytes.len();
            self.dropped.add(&oldest);
        }
    }

    /// Takes the oldest request.
    pub(super) fn take(&mut self) -> Option<Request> {
        let request = self.waiting.pop_front()?;
        self.bytes -= request.bytes.len();
        Some(request)
    }

    /// Notes that a request has arrived.
    pub(super) fn succeed(&mut self, request: &Request) {
        self.retry.reset();
        self.sent.add(request);
    }

    /// Notes that a request was refused for good.
    pub(super) fn refuse(&mut self, request: &Request) {
        self.retry.reset();
        self.dropped.add(request);
    }

    /// Puts a request back, and returns the wait before it may be sent again: twice that of the previous
    /// failure, or the time that the collector asked for.
    pub(super) fn put_back(&mut self, request: Request, asked: Option<Duration>) -> Duration {
        self.bytes += request.bytes.len();
        self.waiting.push_front(request);
        self.drop_excess();
        let pause = self.retry.next_wait();
        asked.map_or(pause, |asked| asked.clamp(pause, self.retry.max()))
    }

    /// Drops all queued requests.
    pub(super) fn drop_all(&mut self) {
        while let Some(request) = self.take() {
            self.dropped.add(&request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize) -> Request {
        Request::new(vec![0; bytes], 10)
    }

    #[test]
    fn requests_wait_in_order_and_the_oldest_are_dropped() {
        let mut queue = Queue::default();
        for size in [1, 2, 3] {
            queue.add(request(size << 20));
        }
        let first = queue.take().unwrap();
        assert_eq!(first.bytes.len(), 1 << 20);
        queue.put_back(first, None);
        queue.add(request(11 << 20));
        // 17 MB: the oldest one goes.
        assert_eq!(queue.dropped, RequestCount { requests: 1, items: 10 });
        assert_eq!(queue.take().unwrap().bytes.len(), 2 << 20);
        queue.add(request(17 << 20));
        assert_eq!(queue.dropped, RequestCount { requests: 4, items: 40 });
        assert!(queue.take().is_none() && queue.bytes == 0);
    }

    #[test]
    fn waits_double_up_to_half_a_minute_and_begin_anew_after_a_success() {
        let mut queue = Queue::default();
        let pause = |queue: &mut Queue, asked: Option<u64>| {
            queue.put_back(request(1), asked.map(Duration::from_secs)).as_secs()
        };
        let waits: Vec<_> = (0..8).map(|_| pause(&mut queue, None)).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
        queue.succeed(&request(1));
        assert_eq!(
            [pause(&mut queue, Some(5)), pause(&mut queue, Some(0)), pause(&mut queue, Some(9999))],
            [5, 2, 30]
        );
    }
}
