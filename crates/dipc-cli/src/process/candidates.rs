//! The processes that a user may have meant, as lines of text.

use dipc_transport::Endpoint;

use crate::render::command_line::shortened;
use crate::render::escape::escape_controls;
use crate::render::width;

/// Maximum number of processes to list.
const MAX_CANDIDATES: usize = 10;
/// The width of a line if standard error is not a terminal.
const WIDTH: usize = 120;

/// Returns the name of the program that a process runs. For `dotnet`, the name of many processes on a
/// machine, it is the name of the assembly.
pub(crate) fn application_name(pid: u32, name: &str) -> String {
    let assembly = (name == "dotnet").then(|| dipc_doctor::entry_assembly(pid)).flatten();
    assembly.unwrap_or_else(|| name.to_owned())
}

/// Returns a line for each process: its pid, its name and the command line.
pub(crate) fn lines(endpoints: &[Endpoint]) -> Vec<String> {
    let names: Vec<_> =
        endpoints.iter().take(MAX_CANDIDATES).map(|it| application_name(it.pid, &it.name)).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut lines: Vec<_> = endpoints
        .iter()
        .zip(names)
        .map(|(endpoint, name)| {
            let line =
                format!("  {:>7}  {name:widest$}  {}", endpoint.pid, shortened(&command_line(endpoint.pid)));
            // A list to choose from has a number before each line.
            let width = width::of_errors().map_or(WIDTH, |width| width.saturating_sub(3));
            width::cut(escape_controls(line.trim_end()).as_ref(), width)
        })
        .collect();
    let others = endpoints.len().saturating_sub(MAX_CANDIDATES);
    if others > 0 {
        lines.push(format!("  and {others} more"));
    }
    lines
}

/// Returns the command line from the system, in the form that runtimes report: the words separated by spaces.
pub(crate) fn command_line(pid: u32) -> String {
    let words = dipc_transport::command_line(pid).unwrap_or_default();
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dotnet_has_the_name_of_its_assembly() {
        let own = std::process::id();
        assert_eq!(application_name(own, "web"), "web");
        // This test's command line is not that of dotnet.
        assert_eq!(application_name(own, "dotnet"), "dotnet");
    }
}
