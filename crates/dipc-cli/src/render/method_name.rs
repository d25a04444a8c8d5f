//! Short names of methods, as dotnet-trace shows them.

/// Returns type, method and parameters: the last two parts of the path before the last parentheses. Dots in type arguments do
/// not count: dotnet-trace shows ``List`1[System.__Canon].Add(!0)`` as `__Canon].Add(!0)`.
pub(crate) fn shorten(name: &str) -> String {
    if name == "?!?" {
        return "Missing Symbol".to_owned();
    }
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

    #[test]
    fn names_are_shortened_as_dotnet_trace_shortens_them() {
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
            ("?!?", "Missing Symbol"),
            ("Threads", "Threads"),
        ] {
            assert_eq!(shorten(whole), short);
        }
    }
}
