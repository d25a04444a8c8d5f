//! The functions that the page's worker calls: they make the page of a recording, as `dipc convert -f html`
//! does.
//!
//! The worker writes lines at `buffer(length)`: the program that the page names, and the names of the files.
//! After `make()` a text of `result_length()` bytes is at `result()`. The module reads the files through two
//! functions of the worker, in pieces and more than once if need be: memory does not hold the recording.

mod file;
mod recording;

use std::cell::RefCell;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static RESULT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns where the worker writes `length` bytes of UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn buffer(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.resize(length, 0);
        input.as_mut_ptr()
    })
}

/// Makes the page of the named files. Returns whether the result is a page: otherwise it is a sentence that
/// says what is wrong.
#[unsafe(no_mangle)]
pub extern "C" fn make() -> bool {
    let input = INPUT.take();
    let input = String::from_utf8_lossy(&input);
    let mut lines = input.lines();
    let exporter = lines.next().unwrap_or_default();
    let names: Vec<_> = lines.collect();
    let made = recording::page(exporter, &names);
    let is_page = made.is_ok();
    RESULT.set(made.unwrap_or_else(String::into_bytes));
    is_page
}

/// Returns where the result is.
#[unsafe(no_mangle)]
pub extern "C" fn result() -> *const u8 {
    RESULT.with_borrow(|result| result.as_ptr())
}

/// Returns the bytes of the result.
#[unsafe(no_mangle)]
pub extern "C" fn result_length() -> usize {
    RESULT.with_borrow(Vec::len)
}
