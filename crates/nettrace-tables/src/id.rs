//! Identities by content: equal content has equal ids in all recordings, files and machines.

use sha2::{Digest as _, Sha256};

/// An identity: the first 16 bytes of a SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Id(pub [u8; 16]);

/// The strings that identify a frame. They do not contain an address, a path or a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameContent<'a> {
    /// `managed`, `native` or `nameless`.
    pub(crate) kind: &'a str,
    pub(crate) module: &'a str,
    pub(crate) type_name: &'a str,
    pub(crate) method: &'a str,
    pub(crate) signature: &'a str,
}

impl Id {
    /// Returns the identity of a frame: over kind, module, type, method and signature, each preceded by a
    /// 4-byte length.
    pub(crate) fn of_frame(content: &FrameContent<'_>) -> Self {
        let FrameContent { kind, module, type_name, method, signature } = *content;
        let mut hash = Sha256::new();
        for text in [kind, module, type_name, method, signature] {
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            hash.update(length.to_le_bytes());
            hash.update(text.as_bytes());
        }
        Self::first(&hash.finalize())
    }

    /// Returns the identity of the stack of a frame that `caller` called; that of the empty stack is zero.
    pub(crate) fn of_stack(caller: Self, frame: Self) -> Self {
        Self::first(&Sha256::new().chain_update(caller.0).chain_update(frame.0).finalize())
    }

    /// Returns the first 16 bytes of a SHA-256.
    pub(crate) fn first(hash: &[u8]) -> Self {
        Self(hash.first_chunk().copied().unwrap_or_default())
    }

    /// Returns the identity as 32 lower-case hexadecimal digits.
    pub(crate) fn to_hex(self) -> String {
        let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value & 15)]);
        self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
    }
}

/// Returns the name by which a method is compared between releases: the numbers that compilers put into the
/// names of lambdas, local functions, closures and state machines are removed, `Pay>b__7_1` to `Pay>b__`.
pub(crate) fn method_key(module: &str, type_name: &str, method: &str) -> String {
    let mut key = String::with_capacity(module.len() + type_name.len() + method.len() + 2);
    key.push_str(module);
    key.push('!');
    push_without_numbers(&mut key, type_name);
    if !type_name.is_empty() {
        key.push('.');
    }
    push_without_numbers(&mut key, method);
    key
}

/// Appends a name without the digits, and the `_` and `|` between them, that follow each `__` after a `>`.
fn push_without_numbers(key: &mut String, name: &str) {
    let mut rest = name;
    while let Some(generated) = rest.find('>') {
        let (before, behind) = rest.split_at(generated + 1);
        key.push_str(before);
        let end = behind.find(['+', '.', '<', '>', '[', ',', '`']).unwrap_or(behind.len());
        let (suffix, later) = behind.split_at(end);
        match suffix.split_once("__") {
            Some((kind, what)) => {
                key.push_str(kind);
                key.push_str("__");
                key.push_str(what.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_' || c == '|'));
            }
            None => key.push_str(suffix),
        }
        rest = later;
    }
    key.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(module: &'a str, type_name: &'a str, method: &'a str) -> FrameContent<'a> {
        FrameContent { kind: "managed", module, type_name, method, signature: "void ()" }
    }

    #[test]
    fn ids_match_the_first_version_of_the_tables() {
        // Computed by Python's hashlib.
        let id = Id::of_frame(&frame("Shop", "Shop.Cart", "Pay"));
        assert_eq!(id.to_hex(), "fccee920b3c963013929ea56db2d774a");
        assert_eq!(Id::of_stack(Id::default(), id).to_hex(), "c4a9483f958137fc7d974b3ba2602cc0");
    }

    #[test]
    fn texts_do_not_run_into_one_another() {
        assert_ne!(Id::of_frame(&frame("A", "BC", "D")), Id::of_frame(&frame("AB", "C", "D")));
        assert_ne!(Id::of_frame(&frame("A", "B", "")), Id::of_frame(&frame("A", "", "B")));
    }

    #[test]
    fn numbers_of_compilers_are_cut_from_keys() {
        for (type_name, method, key) in [
            ("Shop.Cart", "Pay", "Shop!Shop.Cart.Pay"),
            ("Shop.Cart+<PayAsync>d__7", "MoveNext", "Shop!Shop.Cart+<PayAsync>d__.MoveNext"),
            ("Shop.Cart+<>c__DisplayClass3_0", "<Pay>b__1", "Shop!Shop.Cart+<>c__DisplayClass.<Pay>b__"),
            ("Shop.Cart+<>c", "<Pay>b__3_12", "Shop!Shop.Cart+<>c.<Pay>b__"),
            ("Shop.Cart", "<Pay>g__Sum|3_0", "Shop!Shop.Cart.<Pay>g__Sum"),
            ("Shop.List`1[System.Int32]", "Add2", "Shop!Shop.List`1[System.Int32].Add2"),
            ("", "<", "Shop!<"),
            ("A+<B>d__1`1[C]", "x", "Shop!A+<B>d__`1[C].x"),
        ] {
            assert_eq!(method_key("Shop", type_name, method), key);
        }
    }
}
