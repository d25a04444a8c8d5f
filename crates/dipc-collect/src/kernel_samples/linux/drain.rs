//! A thread that only empties the kernel's buffers: images, names and a slow disk delay a reader, and records
//! that do not fit into a full buffer are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use linux_sampler::{RecordBatch, RecordReader};

use super::INTERVAL;
use crate::kernel_samples::SampleError;

/// The time between looks at a full queue.
const RETRY: Duration = Duration::from_millis(5);

/// The batches of records that a thread reads until it is stopped, the processes end, or this is dropped.
#[derive(Debug)]
pub(super) struct Drain {
    batches: Receiver<Result<RecordBatch, SampleError>>,
    queued: Arc<AtomicUsize>,
}

impl Drain {
    /// Starts the thread. It ends with the processes if `ends` is true. At most `max_queued` bytes wait to be
    /// decoded: after that, the kernel's buffers fill up.
    pub(super) fn start(reader: RecordReader, ends: bool, max_queued: usize, stop: Arc<AtomicBool>) -> Self {
        Self::start_telling(reader, ends, max_queued, stop, Arc::default())
    }

    /// The same; `is_over` becomes true once the kernel takes no more samples.
    pub(super) fn start_telling(
        mut reader: RecordReader,
        ends: bool,
        max_queued: usize,
        stop: Arc<AtomicBool>,
        is_over: Arc<AtomicBool>,
    ) -> Self {
        let (sender, batches) = mpsc::channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let queue = Queue { batches: sender, bytes: Arc::clone(&queued), max_bytes: max_queued };
        thread::spawn(move || {
            if let Err(error) = drain(&mut reader, ends, &stop, &queue) {
                let _ = queue.batches.send(Err(error));
            }
            is_over.store(true, Ordering::Release);
        });
        Self { batches, queued }
    }

    /// Returns the next batch, within a moment; an empty one if there is none. `None` after the last.
    pub(super) fn next(&self) -> Option<Result<RecordBatch, SampleError>> {
        match self.batches.recv_timeout(INTERVAL) {
            Ok(Ok(batch)) => {
                self.queued.fetch_sub(batch.size(), Ordering::AcqRel);
                Some(Ok(batch))
            }
            Ok(Err(error)) => Some(Err(error)),
            Err(mpsc::RecvTimeoutError::Timeout) => Some(Ok(RecordBatch::default())),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
        }
    }
}

/// The batches that wait to be decoded.
struct Queue {
    batches: Sender<Result<RecordBatch, SampleError>>,
    bytes: Arc<AtomicUsize>,
    max_bytes: usize,
}

impl Queue {
    /// Adds a batch. Returns false if nobody decodes it.
    fn add(&self, batch: RecordBatch) -> bool {
        self.bytes.fetch_add(batch.size(), Ordering::AcqRel);
        self.batches.send(Ok(batch)).is_ok()
    }

    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Acquire) > self.max_bytes
    }
}

fn drain(reader: &mut RecordReader, ends: bool, stop: &AtomicBool, queue: &Queue) -> Result<(), SampleError> {
    loop {
        let batch = reader.read(INTERVAL).map_err(SampleError::Read)?;
        let is_last = stop.load(Ordering::Acquire) || (ends && reader.running() == 0);
        if !queue.add(batch) || is_last {
            break;
        }
        while queue.is_full() && !stop.load(Ordering::Acquire) {
            thread::sleep(RETRY);
        }
    }
    queue.add(reader.finish());
    Ok(())
}
