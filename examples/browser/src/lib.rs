//! The functions that the page calls: they count the events of a recording by provider.
//!
//! A page writes a piece of the file at `buffer(length)`, calls `push()`, and after the last piece
//! `finish()`. A text of `finish()` bytes is then at `result()`. Memory holds a block of the recording, not
//! the recording.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use nettrace::Decoder;

#[derive(Default)]
struct Counter {
    decoder: Decoder,
    events: BTreeMap<String, u64>,
    error: Option<String>,
    buffer: Vec<u8>,
    result: String,
}

thread_local! {
    static COUNTER: RefCell<Counter> = RefCell::default();
}

/// Starts with a new recording.
#[unsafe(no_mangle)]
pub extern "C" fn start() {
    COUNTER.take();
}

/// Returns where the page writes the next `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn buffer(length: usize) -> *mut u8 {
    COUNTER.with_borrow_mut(|counter| {
        counter.buffer.resize(length, 0);
        counter.buffer.as_mut_ptr()
    })
}

/// Reads the bytes in the buffer. Returns whether more are wanted: not after an error.
#[unsafe(no_mangle)]
pub extern "C" fn push() -> bool {
    COUNTER.with_borrow_mut(|counter| {
        counter.decoder.feed(&counter.buffer);
        counter.count();
        counter.error.is_none()
    })
}

/// Reads the end of the recording. Returns the length of the result, which is UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn finish() -> usize {
    COUNTER.with_borrow_mut(|counter| {
        counter.decoder.end_of_input();
        counter.count();
        counter.result = counter.summary();
        counter.result.len()
    })
}

/// Returns where the result is.
#[unsafe(no_mangle)]
pub extern "C" fn result() -> *const u8 {
    COUNTER.with_borrow(|counter| counter.result.as_ptr())
}

impl Counter {
    /// Counts the events that are whole.
    fn count(&mut self) {
        let Self { decoder, events, error, .. } = self;
        let counted = decoder.for_each(|event| match events.get_mut(event.provider()) {
            Some(count) => *count += 1,
            None => {
                events.insert(event.provider().to_owned(), 1);
            }
        });
        if let Err(failure) = counted {
            error.get_or_insert_with(|| failure.to_string());
        }
    }

    /// Returns a line `COUNT PROVIDER` for each provider, and lines about what is missing.
    fn summary(&self) -> String {
        let mut lines = String::new();
        for (provider, count) in &self.events {
            let _ = writeln!(lines, "{count} {provider}");
        }
        let lost = self.decoder.loss().total();
        if lost > 0 {
            let _ = writeln!(lines, "lost: {lost} events");
        }
        for damage in self.decoder.damage() {
            let _ = writeln!(lines, "damage: {damage}");
        }
        if let Some(offset) = self.decoder.truncated_at() {
            let _ = writeln!(lines, "the recording is cut at byte {offset}");
        }
        if let Some(error) = &self.error {
            let _ = writeln!(lines, "error: {error}");
        }
        lines
    }
}
