//! Names that compilers make: `<Method>b__0_1`.

/// A name that a compiler made for a part of the method `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GeneratedName<'n> {
    /// A method: a lambda.
    Lambda { of: &'n str, ordinal: &'n str },
    /// A method: a local function.
    LocalFunction { of: &'n str, name: &'n str, ordinal: &'n str },
    /// A type: the state machine of an `async` method or an iterator.
    StateMachine { of: &'n str, kind: &'n str },
    /// A type: the variables that lambdas share, or where none do, the lambdas. mcs names the method, Roslyn
    /// does not.
    Closure { of: &'n str, ordinal: &'n str },
}

impl<'n> GeneratedName<'n> {
    pub(super) fn parse(name: &'n str) -> Option<Self> {
        let (of, suffix) = split(name)?;
        if suffix == "c" && of.is_empty() {
            return Some(Self::Closure { of, ordinal: "" });
        }
        if suffix == "d" {
            return Some(Self::StateMachine { of, kind: suffix }).filter(|_| !of.is_empty());
        }
        let (kind, rest) = suffix.split_once("__")?;
        match kind {
            "b" | "m" => Some(Self::Lambda { of, ordinal: rest }),
            "g" => rest.rsplit_once('|').map(|(name, ordinal)| Self::LocalFunction { of, name, ordinal }),
            "d" => Some(Self::StateMachine { of, kind: suffix }),
            "c" => {
                let closure = ["DisplayClass", "AnonStorey"].iter().find_map(|kind| rest.strip_prefix(kind));
                match closure {
                    Some(ordinal) => Some(Self::Closure { of, ordinal }),
                    // The lambdas of a generic method.
                    None if rest.bytes().all(|byte| byte.is_ascii_digit()) => {
                        Some(Self::Closure { of, ordinal: rest })
                    }
                    None if rest.starts_with("async") || rest.starts_with("Iterator") => {
                        Some(Self::StateMachine { of, kind: suffix })
                    }
                    None => None,
                }
            }
            _ => None,
        }
        .filter(|name| !matches!(name, Self::StateMachine { of: "", .. }))
    }
}

/// Splits `<of>suffix`. `of` may have brackets of its own.
fn split(name: &str) -> Option<(&str, &str)> {
    let inner = name.strip_prefix('<')?;
    let mut depth = 1_u32;
    for (at, c) in inner.char_indices() {
        match c {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            let (of, rest) = inner.split_at_checked(at)?;
            return Some((of, rest.strip_prefix('>')?));
        }
    }
    None
}
