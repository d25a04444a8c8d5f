//! Options of writing a profile.

/// Options of a written profile.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct WriteOptions<'a> {
    /// The title of the profile.
    pub title: &'a str,
    /// The program that writes it.
    pub exporter: &'a str,
    /// True if threads stay apart in the formats that show no time, each thread being the first frame of its
    /// stacks.
    pub by_thread: bool,
    /// True if cells of CSV that a spreadsheet would take for a formula, beginning with `=`, `+`, `-`
    /// or `@`, get an apostrophe in front. Programs that read the CSV would see it, so it is only for
    /// spreadsheets.
    pub for_spreadsheets: bool,
}

impl<'a> WriteOptions<'a> {
    /// The title of the profile, and the program that writes it.
    pub const fn new(title: &'a str, exporter: &'a str) -> Self {
        Self { title, exporter, by_thread: false, for_spreadsheets: false }
    }

    /// With or without [`by_thread`](Self::by_thread).
    #[must_use]
    pub const fn with_by_thread(self, by_thread: bool) -> Self {
        Self { by_thread, ..self }
    }

    /// With or without [`for_spreadsheets`](Self::for_spreadsheets).
    #[must_use]
    pub const fn with_for_spreadsheets(self, for_spreadsheets: bool) -> Self {
        Self { for_spreadsheets, ..self }
    }
}
