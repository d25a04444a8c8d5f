//! Names of frames in tables, shortened to the available width.

use nettrace_export::method_name::{MISSING_SYMBOL, dotnet_trace_name, parameters_start};
use nettrace_export::{FrameId, Frames, NameForm};
use unicode_width::UnicodeWidthStr as _;

use crate::render::escape::escape_controls;
use crate::render::width;

/// The name of a frame, as tables show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameName {
    /// Type, method and parameters.
    method: String,
    /// The source line, with a leading blank.
    line: String,
    is_csharp: bool,
}

impl FrameName {
    /// The name of a frame of a profile; without a frame, `name`.
    pub(crate) fn new(frames: &Frames, frame: Option<FrameId>, name: &str) -> Self {
        let with_line = frame.and_then(|id| Some((frames.name(id), frames.method(id), frames.line(id)?)));
        let line = with_line.and_then(|(name, method, _)| name.strip_prefix(method)).unwrap_or_default();
        let short = frame.and_then(|id| frames.short_name(id));
        let shown = short.unwrap_or(name);
        let method = shown.strip_suffix(line).unwrap_or(shown);
        let method = match frame {
            _ if short.is_some() => method.to_owned(),
            // As dotnet-trace shows it.
            Some(id) if frames.is_unknown(id) => MISSING_SYMBOL.to_owned(),
            _ => dotnet_trace_name(method),
        };
        Self {
            method: escape_controls(&method).into_owned(),
            line: escape_controls(line).into_owned(),
            is_csharp: short.is_some(),
        }
    }

    /// Type and method, without parameters.
    pub(crate) fn without_parameters(&self) -> &str {
        let end = if self.is_csharp { parameters_start(&self.method) } else { self.method.find('(') };
        end.and_then(|end| self.method.get(..end)).unwrap_or(&self.method)
    }

    /// Returns the name shortened to `room` columns. Names in C# lose their parameters first, then type
    /// arguments, then their end. Others lose their end, but are left to the caller if they lack a source
    /// line. The line always stays.
    pub(crate) fn fit(&self, room: usize) -> String {
        let room = room.saturating_sub(self.line.width());
        let method = if self.is_csharp {
            fit_csharp(&self.method, room)
        } else if self.line.is_empty() {
            self.method.clone()
        } else {
            width::prefix(&self.method, room).to_owned()
        };
        method + &self.line
    }
}

/// Returns the name that a table shows.
pub(crate) fn named(form: NameForm, full: &str, csharp: &str) -> String {
    if form == NameForm::Full { full.to_owned() } else { csharp.to_owned() }
}

/// Returns a name in C# shortened to `room` columns.
pub(crate) fn fit_csharp(method: &str, room: usize) -> String {
    if method.width() <= room {
        return method.to_owned();
    }
    let start = parameters_start(method).filter(|_| !method.ends_with("()"));
    let without_parameters = start.and_then(|at| Some(method.get(..at)?.to_owned() + "(…)"));
    let shorter = without_parameters.unwrap_or_else(|| method.to_owned());
    if shorter.width() <= room {
        return shorter;
    }
    let shortest = fold_type_arguments(&shorter);
    if shortest.width() <= room {
        return shortest;
    }
    let cut = width::prefix(&shortest, room.saturating_sub(1));
    // Do not cut within type arguments.
    let whole = cut.rfind('<').filter(|open| !cut.get(*open..).unwrap_or_default().contains('>'));
    cut.get(..whole.unwrap_or(cut.len())).unwrap_or(cut).to_owned() + "…"
}

/// Replaces type arguments. Compiler-generated names that begin with `<` stay.
fn fold_type_arguments(method: &str) -> String {
    let mut folded = String::with_capacity(method.len());
    let (mut depth, mut before) = (0_u32, ' ');
    for c in method.chars() {
        match c {
            '<' if depth > 0 || before.is_alphanumeric() || before == '_' => {
                if depth == 0 {
                    folded.push_str("<…>");
                }
                depth += 1;
            }
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => folded.push(c),
            _ => {}
        }
        before = c;
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a name for tests of tables.
    impl FrameName {
        pub(crate) fn of_test(method: &str, line: &str, is_csharp: bool) -> Self {
            let method = if is_csharp { method.to_owned() } else { dotnet_trace_name(method) };
            Self { method, line: line.to_owned(), is_csharp }
        }
    }

    #[test]
    fn code_of_no_module_is_a_missing_symbol() {
        let mut frames = Frames::default();
        let shown = |frames: &Frames, id| FrameName::new(frames, Some(id), frames.name(id)).fit(80);
        let (unknown, of_file) = (frames.intern("?!?"), frames.intern("libc.so.6!?"));
        assert_eq!((&*shown(&frames, unknown), &*shown(&frames, of_file)), ("Missing Symbol", "libc.so.6!?"));
    }

    #[test]
    fn csharp_names_lose_parameters_then_type_arguments_then_their_end() {
        let name = "Map<int, Pair<string, byte[]>>.Get<T>(Func<T, (int, int)>, ref int)";
        for (room, expected) in [
            (67, name),
            (66, "Map<int, Pair<string, byte[]>>.Get<T>(…)"),
            (40, "Map<int, Pair<string, byte[]>>.Get<T>(…)"),
            (39, "Map<…>.Get<…>(…)"),
            (15, "Map<…>.Get<…>(…"),
            (13, "Map<…>.Get…"),
            (5, "Map…"),
        ] {
            let fitted = fit_csharp(name, room);
            assert!(fitted.width() <= room, "{fitted}");
            assert_eq!(fitted, expected);
        }
        assert_eq!(fit_csharp("Id.operator <(Id, Id)", 16), "Id.operator <(…)");
        assert_eq!(fit_csharp("N.<>c.<Main>b__0 [async]", 12), "N.<>c.…");
    }

    #[test]
    fn lines_stay() {
        let name = FrameName::of_test("Type.Method(int, string, object)", " (File.cs:12)", true);
        assert_eq!(name.fit(30), "Type.Method(…) (File.cs:12)");
        assert_eq!(name.without_parameters(), "Type.Method");
        assert_eq!(FrameName::of_test("Type.Method()", "", true).without_parameters(), "Type.Method");
        let name = FrameName::of_test("App!N.Type.Method(int32)", " (File.cs:12)", false);
        assert_eq!(name.fit(80), "Type.Method(int32) (File.cs:12)");
    }
}
