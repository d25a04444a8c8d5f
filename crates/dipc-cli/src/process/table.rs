//! The table of processes.

use crate::process::info::Process;
use crate::render::command_line;
use crate::render::table::{Align, Columns};

/// The columns that are dropped first on a narrow terminal.
const SPARE: &[&str] = &["UID", "ARCH", "RUNTIME", "NAME"];

/// Returns the table, fitted to the width of the terminal.
pub(crate) fn fitted(processes: &[Process]) -> String {
    let mut columns = Columns::new([
        ("PID", Align::Right),
        ("NAME", Align::Left),
        ("ASSEMBLY", Align::Left),
        ("UID", Align::Right),
        ("RUNTIME", Align::Left),
        ("ARCH", Align::Left),
        ("COMMAND LINE", Align::Left),
    ]);
    for process in processes {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let number = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        columns.row([
            number(process.pid),
            text(&process.name),
            text(&process.entry_assembly),
            number(process.uid),
            text(&process.clr_version),
            text(&process.arch),
            process.command_line.as_deref().map_or("-".into(), command_line::shortened).into_owned(),
        ]);
    }
    columns.fitted(SPARE)
}
