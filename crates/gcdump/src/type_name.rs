//! Names of types: as sent by the runtime, as written by dotnet-gcdump, and in C#.

use clr_events::csharp;
use nettrace::Utf16;

/// Maximum number of characters of a name or path to keep from an event.
pub(crate) const MAX_NAME_LENGTH: usize = 4096;
/// Maximum number of bytes of type names that other names may repeat: a few bytes of a recording can name a
/// type.
const MAX_REPEATED_BYTES: usize = 16 << 20;

/// Returns a string of an event, cut at the maximum length of names.
pub(crate) fn name_of_event(text: Utf16<'_>) -> String {
    text.chars().take(MAX_NAME_LENGTH).collect()
}

/// The first characters of a name that was read from memory.
pub(crate) fn limited_name(text: &str) -> String {
    text.chars().take(MAX_NAME_LENGTH).collect()
}

/// The number of bytes that names have repeated from other names.
#[derive(Debug, Default)]
pub(crate) struct RepeatBudget(usize);

impl RepeatBudget {
    /// Returns true if a name may be repeated once more.
    pub(crate) fn takes(&mut self, name: &str) -> bool {
        self.0 = self.0.saturating_add(name.len());
        self.0 <= MAX_REPEATED_BYTES
    }
}

/// Returns dotnet-gcdump's name for a runtime's type name: no arity, `<>` around type arguments, `[]` for
/// vectors.
///
/// Also turns `[,]` into `<,>` and `<>c` into `[]c`.
pub(crate) fn tool_name(runtime: &str) -> String {
    let mut name = String::with_capacity(runtime.len());
    let mut characters = runtime.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '`' if characters.peek().is_some_and(char::is_ascii_digit) => {
                while characters.next_if(char::is_ascii_digit).is_some() {}
            }
            '[' => name.push('<'),
            ']' => name.push('>'),
            other => name.push(other),
        }
    }
    name.replace("<>", "[]")
}

/// Returns the C# name for a runtime's type name, or the name as it is.
///
/// For a nested type the runtime writes the type arguments, but not how many of them are its own:
/// `Entry[System.String,System.Int32]`.
pub(crate) fn csharp_name(runtime: &str) -> String {
    csharp::type_name(runtime)
        .or_else(|| csharp::type_name(&runtime_name(&tool_name(runtime))?))
        .unwrap_or_else(|| runtime.to_owned())
}

/// Returns the C# name for dotnet-gcdump's type name, or the name as it is.
pub(crate) fn csharp_of_tool(tool: &str) -> String {
    runtime_name(tool).and_then(|name| csharp::type_name(&name)).unwrap_or_else(|| tool.to_owned())
}

/// Returns the runtime's name for dotnet-gcdump's type name; `None` if brackets are not paired.
///
/// The tool has removed the numbers of type arguments; they are restored at the last part of a name. The
/// numbers of enclosing types are lost.
fn runtime_name(tool: &str) -> Option<String> {
    let lists = bracket_lists(tool)?;
    let mut name = String::with_capacity(tool.len().saturating_add(16));
    let mut lists = lists.into_iter().peekable();
    let mut before = None;
    // The end of a compiler-generated name, and the ends of argument lists.
    let (mut verbatim, mut ends) = (0, Vec::new());
    let mut characters = tool.char_indices();
    while let Some((at, character)) = characters.next() {
        let list = lists.next_if(|list| list.start == at);
        let follows_name = before.is_some_and(|c: char| c.is_alphanumeric() || "_$>]".contains(c));
        before = Some(character);
        match (character, list) {
            _ if at < verbatim => name.push(character),
            ('<', Some(list)) if !follows_name => {
                verbatim = list.end;
                name.push('<');
            }
            // `<>c` has become `[]c`.
            ('[', _) if !follows_name && tool.get(at..).is_some_and(|rest| rest.starts_with("[]")) => {
                name.push_str("<>");
                characters.next();
            }
            ('<', Some(list)) => {
                if !list.is_array {
                    name.push('`');
                    name.push_str(&list.commas.saturating_add(1).to_string());
                }
                name.push('[');
                ends.push(list.end);
            }
            ('>', _) if ends.last() == Some(&at) => {
                ends.pop();
                name.push(']');
            }
            _ => name.push(character),
        }
    }
    Some(name)
}

/// A pair of angle brackets in a name.
#[derive(Clone, Copy)]
struct BracketList {
    start: usize,
    /// The offset of the closing bracket.
    end: usize,
    /// Commas between these two brackets, outside nested ones.
    commas: usize,
    /// True if it has only characters that arrays have.
    is_array: bool,
}

/// Finds the pairs of angle brackets, in the order of their beginnings.
fn bracket_lists(name: &str) -> Option<Vec<BracketList>> {
    let mut lists: Vec<BracketList> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (at, character) in name.char_indices() {
        let innermost = open.last().and_then(|list| lists.get_mut(*list));
        match (character, innermost) {
            ('<', innermost) => {
                if let Some(list) = innermost {
                    list.is_array = false;
                }
                open.push(lists.len());
                lists.push(BracketList { start: at, end: at, commas: 0, is_array: true });
            }
            ('>', innermost) => {
                innermost?.end = at;
                open.pop();
            }
            (',', Some(list)) => list.commas = list.commas.saturating_add(1),
            ('*', _) | (_, None) => {}
            (_, Some(list)) => list.is_array = false,
        }
    }
    open.is_empty().then_some(lists)
}

/// Returns the namespace part of a type's name, or an empty string.
///
/// Nested types are sent without their enclosing types, so their namespace appears empty.
pub(crate) fn namespace(name: &str) -> &str {
    let end = name.find(['<', '[', '`', '+', '(']).unwrap_or(name.len());
    let plain = name.get(..end).unwrap_or_default();
    plain.rfind('.').and_then(|dot| plain.get(..dot)).unwrap_or_default()
}

/// Returns the size class that dotnet-gcdump appends to the type's name of an object of this size.
pub(crate) const fn size_class(size: u64) -> Option<&'static str> {
    Some(match size {
        0..=1_000 => return None,
        1_001..10_000 => " (Bytes > 1K)",
        10_000..100_000 => " (Bytes > 10K)",
        100_000..1_000_000 => " (Bytes > 100K)",
        1_000_000..10_000_000 => " (Bytes > 1M)",
        10_000_000..100_000_000 => " (Bytes > 10M)",
        _ => " (Bytes > 100M)",
    })
}

/// Returns the name without a size class.
pub(crate) fn without_size_class(name: &str) -> &str {
    const CLASSES: [&str; 6] = ["1K)", "10K)", "100K)", "1M)", "10M)", "100M)"];
    match name.rsplit_once(" (Bytes > ") {
        Some((plain, class)) if CLASSES.contains(&class) => plain,
        _ => name,
    }
}

/// Returns the type arguments of a runtime's type name, each with its enclosing types: ``List`1[Outer+Node]``
/// has `Outer+Node`.
pub(crate) fn type_arguments(runtime: &str) -> Vec<&str> {
    let Some(open) = runtime.find('[') else { return Vec::new() };
    let mut arguments = Vec::new();
    let (mut depth, mut start) = (0_usize, open.saturating_add(1));
    for (at, character) in runtime.char_indices().skip_while(|(at, _)| *at < open) {
        let is_end = match character {
            '[' => {
                depth = depth.saturating_add(1);
                false
            }
            ']' => {
                depth = depth.saturating_sub(1);
                depth == 0
            }
            ',' => depth == 1,
            _ => false,
        };
        if is_end {
            arguments.extend(runtime.get(start..at).filter(|argument| !argument.is_empty()));
            start = at.saturating_add(1);
            if depth == 0 {
                break;
            }
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_tool() {
        for (runtime, tool) in [
            (
                "System.Collections.Generic.List`1[System.Int32]",
                "System.Collections.Generic.List<System.Int32>",
            ),
            ("System.Byte[][]", "System.Byte[][]"),
            ("System.Int32[,]", "System.Int32<,>"),
            ("System.Int32[*]", "System.Int32<*>"),
            ("System.Int32[][,]", "System.Int32[]<,>"),
            ("<>c__DisplayClass9_0", "[]c__DisplayClass9_0"),
            ("<>f__AnonymousType0`2[A,B]", "[]f__AnonymousType0<A,B>"),
            ("A`", "A`"),
        ] {
            assert_eq!(tool_name(runtime), tool);
        }
    }

    #[test]
    fn names_of_the_tool_and_of_nested_types_are_written_as_in_csharp() {
        for (tool, expected) in [
            ("System.Byte[]", "byte[]"),
            ("System.String<,>", "string[,]"),
            ("System.Int32[]<,>", "int[,][]"),
            ("System.Int32<*>", "int[]"),
            ("Entry<System.String,System.Object>[]", "Entry<string, object>[]"),
            ("Entry<System.String,System.Object><,>", "Entry<string, object>[,]"),
            (
                "System.Collections.Generic.Dictionary<System.String,System.Collections.Generic.List<System.Int32>>",
                "System.Collections.Generic.Dictionary<string, List<int>>",
            ),
            ("[]c", "<>c"),
            ("[]c__DisplayClass9_0", "<>c__DisplayClass9_0"),
            ("[]f__AnonymousType0<System.Int32,N.B>", "<>f__AnonymousType0<int, B>"),
            ("System.Collections.Generic.List<Program+[]c>", "System.Collections.Generic.List<Program.<>c>"),
            ("<Main>d__0", "<Main>d__0"),
            (
                "AsyncStateMachineBox<System.Threading.Tasks.VoidTaskResult,Parked+<Waits>d__6>",
                "AsyncStateMachineBox<VoidTaskResult, Parked.<Waits>d__6>",
            ),
            ("System.Int32X", "System.Int32X"),
            ("UNKNOWN 0x7", "UNKNOWN 0x7"),
            ("A<B", "A<B"),
            ("A>", "A>"),
        ] {
            assert_eq!(csharp_of_tool(tool), expected);
        }
        assert_eq!(csharp_name("Entry[System.String,System.Object][]"), "Entry<string, object>[]");
        assert_eq!(csharp_name("System.String[,]"), "string[,]");
    }

    #[test]
    fn namespaces_and_size_classes() {
        assert_eq!(namespace("System.Collections.Generic.List<System.Int32>"), "System.Collections.Generic");
        assert_eq!((namespace("Leaf"), namespace("A.B[]")), ("", "A"));
        assert_eq!((size_class(1000), size_class(1001)), (None, Some(" (Bytes > 1K)")));
        assert_eq!(size_class(u64::MAX), Some(" (Bytes > 100M)"));
        for size in [1_001, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000] {
            let name = format!("A.B{}", size_class(size).unwrap());
            assert_eq!(without_size_class(&name), "A.B", "{name}");
        }
        assert_eq!(without_size_class("A (Bytes > 7K)"), "A (Bytes > 7K)");
    }

    #[test]
    fn arguments_are_split_at_their_own_level() {
        assert_eq!(type_arguments("D`2[A`1[X,Y],B+C]"), ["A`1[X,Y]", "B+C"]);
        assert_eq!(type_arguments("A[]"), [""; 0]);
        assert_eq!(type_arguments("A"), [""; 0]);
    }
}
