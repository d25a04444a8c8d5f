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

/// Maximum number of bytes that wait to be decoded: after that, the kernel's buffers fill up.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// The time between looks at a full queue.
const RETRY: Duration = Duration::from_millis(5);

/// The batches of records that a thread reads until it is stopped, the processes end, or this is dropped.
#[derive(Debug)]
pub(super) struct Drain {
    batches: Receiver<Result<RecordBatch, SampleError>>,
    queued: Arc<AtomicUsize>,
}

impl Drain {
    /// Starts the thread. It ends with the processes if `ends` is true.
    pub(super) fn start(mut reader: RecordReader, ends: bool, stop: Arc<AtomicBool>) -> Self {
        let (sender, batches) = mpsc::channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let bytes = Arc::clone(&queued);
        thread::spawn(move || {
            if let Err(error) = drain(&mut reader, ends, &stop, &sender, &bytes) {
                let _ = sender.send(Err(error));
            }
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

fn drain(
    reader: &mut RecordReader,
    ends: bool,
    stop: &AtomicBool,
    batches: &Sender<Result<RecordBatch, SampleError>>,
    queued: &AtomicUsize,
) -> Result<(), SampleError> {
    let send = |batch: RecordBatch| {
        queued.fetch_add(batch.size(), Ordering::AcqRel);
        batches.send(Ok(batch)).is_ok()
    };
    loop {
        let batch = reader.read(INTERVAL).map_err(SampleError::Read)?;
        let is_last = stop.load(Ordering::Acquire) || (ends && reader.running() == 0);
        if !send(batch) || is_last {
            break;
        }
        while queued.load(Ordering::Acquire) > MAX_QUEUED_BYTES && !stop.load(Ordering::Acquire) {
            thread::sleep(RETRY);
        }
    }
    send(reader.finish());
    Ok(())
}
