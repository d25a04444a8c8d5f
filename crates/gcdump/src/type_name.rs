//! Names of types: as the runtime sends them, as dotnet-gcdump writes them, as C# has them.

use clr_events::csharp;
use nettrace::Utf16;

/// The largest number of characters of a name, and of a path, that is kept of an event.
pub(crate) const LONGEST_NAME: usize = 4096;
/// The largest number of bytes of names of types that names of other things may repeat: few bytes of a recording can name a type.
const MOST_REPEATED: usize = 16 << 20;

/// Returns a text of an event, cut where it is longer than names are.
pub(crate) fn name_of_event(text: Utf16<'_>) -> String {
    text.chars().take(LONGEST_NAME).collect()
}

/// The bytes that names have repeated of others.
#[derive(Debug, Default)]
pub(crate) struct RepeatBudget(usize);

impl RepeatBudget {
    /// Whether a name may be repeated once more.
    pub(crate) fn takes(&mut self, name: &str) -> bool {
        self.0 = self.0.saturating_add(name.len());
        self.0 <= MOST_REPEATED
    }
}

/// Returns dotnet-gcdump's name of a type that the runtime names so: no arity, `<>` around type arguments, `[]` for vectors.
///
/// It also turns `[,]` into `<,>` and `<>c` into `[]c`.
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

/// Returns the C# name of a type that the runtime names so, or the name as it is.
pub(crate) fn csharp_name(runtime: &str) -> String {
    csharp::type_name(runtime).unwrap_or_else(|| runtime.to_owned())
}

/// Returns a name of dotnet-gcdump with C#'s keywords for types.
pub(crate) fn with_keywords(tool: &str) -> String {
    let mut name = String::with_capacity(tool.len());
    let mut rest = tool;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !is_part_of_name(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let keyword = KEYWORDS.iter().find(|(name, _)| *name == word).map(|(_, keyword)| *keyword);
        name.push_str(keyword.unwrap_or(word));
        let separators = behind.find(is_part_of_name).unwrap_or(behind.len());
        let (separator, next) = behind.split_at(separators);
        name.push_str(separator);
        rest = next;
    }
    name
}

/// Whether a character belongs to a name with its namespace.
fn is_part_of_name(character: char) -> bool {
    character.is_alphanumeric() || "._+".contains(character)
}

/// The types that C# has words for.
const KEYWORDS: [(&str, &str); 15] = [
    ("System.Boolean", "bool"),
    ("System.Byte", "byte"),
    ("System.SByte", "sbyte"),
    ("System.Char", "char"),
    ("System.Decimal", "decimal"),
    ("System.Double", "double"),
    ("System.Single", "float"),
    ("System.Int32", "int"),
    ("System.UInt32", "uint"),
    ("System.Int64", "long"),
    ("System.UInt64", "ulong"),
    ("System.Int16", "short"),
    ("System.UInt16", "ushort"),
    ("System.Object", "object"),
    ("System.String", "string"),
];

/// Returns the namespace of a type's name; empty where it has none.
///
/// Nested types are sent without the types around them, so that these seem to have no namespace.
pub(crate) fn namespace(name: &str) -> &str {
    let end = name.find(['<', '[', '`', '+', '(']).unwrap_or(name.len());
    let plain = name.get(..end).unwrap_or_default();
    plain.rfind('.').and_then(|dot| plain.get(..dot)).unwrap_or_default()
}

/// Returns the class of sizes that dotnet-gcdump adds to the type's name of an object of so many bytes.
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

/// Returns the name without a class of sizes.
pub(crate) fn without_size_class(name: &str) -> &str {
    const CLASSES: [&str; 6] = ["1K)", "10K)", "100K)", "1M)", "10M)", "100M)"];
    match name.rsplit_once(" (Bytes > ") {
        Some((plain, class)) if CLASSES.contains(&class) => plain,
        _ => name,
    }
}

/// Splits the type arguments off a name of the runtime, each with the types around it: ``List`1[Outer+Node]`` has `Outer+Node`.
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
    fn names_are_those_of_the_tool() {
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
    fn keywords_stand_for_whole_names_only() {
        assert_eq!(with_keywords("System.Byte[]"), "byte[]");
        assert_eq!(
            with_keywords("System.Collections.Generic.Dictionary<System.String,System.Int32X>"),
            "System.Collections.Generic.Dictionary<string,System.Int32X>"
        );
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
