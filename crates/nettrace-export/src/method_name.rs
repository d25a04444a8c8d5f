//! Names of methods in tables and sentences: short, without module and namespace.

use crate::profile::frame::{FrameId, Frames};

/// Returns the name of a frame without its source line, as tables show it: in C# if it has such a name, and
/// else as dotnet-trace shows it.
pub fn table_name(frames: &Frames, frame: FrameId) -> String {
    let name = frames.name(frame);
    let line = frames.line(frame).and_then(|_| name.strip_prefix(frames.method(frame))).unwrap_or_default();
    let without_line = |name: &'_ str| name.strip_suffix(line).map_or_else(|| name.to_owned(), str::to_owned);
    match frames.short_name(frame) {
        Some(csharp) => without_line(csharp),
        None if frames.is_unknown(frame) => MISSING_SYMBOL.to_owned(),
        None => dotnet_trace_name(&without_line(name)),
    }
}

/// The name of code of no known file, as dotnet-trace shows it.
pub const MISSING_SYMBOL: &str = "Missing Symbol";

/// Returns the [name in tables](table_name) without parameters.
pub fn without_parameters(frames: &Frames, frame: FrameId) -> String {
    let name = table_name(frames, frame);
    let is_csharp = frames.short_name(frame).is_some();
    let end = if is_csharp { parameters_start(&name) } else { name.find('(') };
    end.and_then(|end| name.get(..end)).unwrap_or(&name).to_owned()
}

/// Returns a C# name without its parameters.
pub fn csharp_without_parameters(method: &str) -> &str {
    parameters_start(method).and_then(|end| method.get(..end)).unwrap_or(method)
}

/// Returns the offset of the parameters in a C# name, if it has any.
pub fn parameters_start(method: &str) -> Option<usize> {
    let inner = method.strip_suffix(')')?;
    let mut depth = 1_u32;
    inner.char_indices().rev().find_map(|(at, c)| {
        match c {
            ')' => depth = depth.saturating_add(1),
            '(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// Returns type, method and parameters of a name written by the runtime: the last two parts of the path
/// before the last parentheses, as dotnet-trace shows them. Dots in type arguments do not count: dotnet-trace
/// shows ``List`1[System.__Canon].Add(!0)`` as `__Canon].Add(!0)`.
pub fn dotnet_trace_name(name: &str) -> String {
    let split = name.rfind(')').and_then(|end| {
        let open = name.get(..end)?.rfind('(')?;
        Some((name.get(..open)?, name.get(open..=end)?))
    });
    match split {
        Some((path, parameters)) => {
            match last_dots(path).nth(1).and_then(|dot| path.get(dot.saturating_add(1)..)) {
                Some(method) => format!("{method}{parameters}"),
                None => name.to_owned(),
            }
        }
        None => name.to_owned(),
    }
}

/// The dots of a name outside brackets, from its end.
fn last_dots(path: &str) -> impl Iterator<Item = usize> {
    let mut depth = 0_u32;
    path.char_indices().rev().filter_map(move |(at, c)| {
        match c {
            ']' | '>' => depth = depth.saturating_add(1),
            '[' | '<' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (c == '.' && depth == 0).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(dotnet_trace_name(whole), short);
        }
    }

    #[test]
    fn parameters_are_left_out() {
        let mut frames = Frames::default();
        let (unknown, native) = (frames.intern("?!?"), frames.intern("App!N.Type.Method(int32)"));
        assert_eq!(without_parameters(&frames, unknown), "Missing Symbol");
        assert_eq!(without_parameters(&frames, native), "Type.Method");
        assert_eq!(csharp_without_parameters("Map<int>.Get<T>(Func<T, (int, int)>)"), "Map<int>.Get<T>");
    }
}
