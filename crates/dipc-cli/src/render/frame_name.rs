//! Names of frames in tables, shortened to the available width.

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
            Some(id) if frames.is_unknown(id) => "Missing Symbol".to_owned(),
            _ => dotnet_traces(method),
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

/// Returns a C# name without its parameters.
pub(crate) fn without_parameters(method: &str) -> &str {
    parameters_start(method).and_then(|end| method.get(..end)).unwrap_or(method)
}

/// Returns the offset of a method's parameters, if it has any.
fn parameters_start(method: &str) -> Option<usize> {
    let inner = method.strip_suffix(')')?;
    let mut depth = 1_u32;
    inner.char_indices().rev().find_map(|(at, c)| {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
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

/// Returns type, method and parameters of a name written by the runtime: the last two parts of the path
/// before the last parentheses, as dotnet-trace shows them. Dots in type arguments do not count: dotnet-trace
/// shows ``List`1[System.__Canon].Add(!0)`` as `__Canon].Add(!0)`.
fn dotnet_traces(name: &str) -> String {
    let split = name.rfind(')').and_then(|end| {
        let open = name.get(..end)?.rfind('(')?;
        Some((name.get(..open)?, name.get(open..=end)?))
    });
    match split {
        Some((path, parameters)) => match last_dots(path).nth(1).and_then(|dot| path.get(dot + 1..)) {
            Some(method) => format!("{method}{parameters}"),
            None => name.to_owned(),
        },
        None => name.to_owned(),
    }
}

/// The dots of a name outside brackets, from its end.
fn last_dots(path: &str) -> impl Iterator<Item = usize> {
    let mut depth = 0_u32;
    path.char_indices().rev().filter_map(move |(at, c)| {
        match c {
            ']' | '>' => depth += 1,
            '[' | '<' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (c == '.' && depth == 0).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a name for tests of tables.
    impl FrameName {
        pub(crate) fn of_test(method: &str, line: &str, is_csharp: bool) -> Self {
            let method = if is_csharp { method.to_owned() } else { dotnet_traces(method) };
            Self { method, line: line.to_owned(), is_csharp }
        }
    }

    #[test]
    fn full_names_are_shortened_as_dotnet_trace_shortens_them() {
        for (whole, short) in [
            ("System.Private.CoreLib!System.Threading.Thread.Sleep(int32)", "Thread.Sleep(int32)"),
            ("workload!Spin.Fib(int32)", "workload!Spin.Fib(int32)"),
            ("System.Console!Interop+Sys.Read(class X,int32)", "Console!Interop+Sys.Read(class X,int32)"),
            (
                "System.Private.CoreLib!System.Collections.Generic.List`1[System.__Canon].AddWithResize(!0)",
                "List`1[System.__Canon].AddWithResize(!0)",
            ),
            (
                "App!N.Map`2[System.Int32,N.Pair`1[System.__Canon]].Get(class N.Key`1<!0>)",
                "Map`2[System.Int32,N.Pair`1[System.__Canon]].Get(class N.Key`1<!0>)",
            ),
            ("App!Box`1[System.__Canon].Wait(!0)", "App!Box`1[System.__Canon].Wait(!0)"),
            ("App!N.Type+<Run>d__2.MoveNext()", "Type+<Run>d__2.MoveNext()"),
            ("App!N.Type..ctor(int32)", ".ctor(int32)"),
            ("Threads", "Threads"),
        ] {
            assert_eq!(dotnet_traces(whole), short);
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
