//! JSON with comments, as the runtime's descriptors are written: read in one pass, without a tree.
//!
//! It is strict: values end where they should, and objects have each name once. Comments and a comma after
//! the last value are allowed, as in Microsoft's reader.

use hashbrown::HashSet;

/// Maximum number of bytes of a string.
const MAX_STRING: usize = 512;
/// Maximum nesting depth of values that are skipped.
const MAX_DEPTH: u32 = 32;

/// An error in a text: its offset, the path of names that leads to it, and the problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonError {
    pub(super) at: usize,
    pub(super) path: String,
    pub(super) problem: String,
}

impl JsonError {
    /// Adds the name of the value that has the error.
    fn within(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }
}

pub(super) type JsonResult<T> = Result<T, JsonError>;

/// A number or a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scalar {
    Number(u64),
    Text(String),
}

impl Scalar {
    /// The number, which can be written as a string, in decimal or hexadecimal digits. Negative numbers are
    /// in two's complement.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => {
                let (digits, is_negative) = match text.strip_prefix('-') {
                    Some(digits) => (digits, true),
                    None => (text.as_str(), false),
                };
                let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
                let number = match hexadecimal {
                    // `from_str_radix` would take a sign, too.
                    Some(digits) if digits.starts_with(['+', '-']) => return None,
                    Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                    None if digits.starts_with(['+', '-']) => return None,
                    None => digits.parse().ok()?,
                };
                Some(if is_negative { number.wrapping_neg() } else { number })
            }
        }
    }
}

/// A text and the place that was reached.
pub(super) struct Json<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Json<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// An error at the next value.
    pub(super) fn error(&self, problem: impl Into<String>) -> JsonError {
        JsonError { at: self.at, path: String::new(), problem: problem.into() }
    }

    /// Returns the next byte that is neither white space nor in a comment.
    pub(super) fn peek(&mut self) -> JsonResult<u8> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let skipped = match rest {
                [b' ' | b'\t' | b'\r' | b'\n', ..] => 1,
                [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
                [b'/', b'*', comment @ ..] => {
                    let length = comment.windows(2).position(|end| end == b"*/");
                    length.ok_or_else(|| self.error("the comment has no end"))?.saturating_add(4)
                }
                [byte, ..] => return Ok(*byte),
                [] => return Err(self.error("the text ends early")),
            };
            self.at = self.at.saturating_add(skipped);
        }
    }

    fn take(&mut self, wanted: u8) -> JsonResult<()> {
        if self.peek()? != wanted {
            return Err(self.error(format!("expected {:?}", char::from(wanted))));
        }
        self.at = self.at.saturating_add(1);
        Ok(())
    }

    /// Takes the byte if it is next.
    fn takes(&mut self, wanted: u8) -> JsonResult<bool> {
        let is_next = self.peek()? == wanted;
        if is_next {
            self.at = self.at.saturating_add(1);
        }
        Ok(is_next)
    }

    /// Reads values between brackets and commas.
    fn list(
        &mut self,
        [open, close]: [u8; 2],
        mut each: impl FnMut(&mut Self) -> JsonResult<()>,
    ) -> JsonResult<()> {
        self.take(open)?;
        while !self.takes(close)? {
            each(self)?;
            if !self.takes(b',')? && self.peek()? != close {
                return Err(self.error("expected a comma or the end"));
            }
        }
        Ok(())
    }

    /// Reads an object; `each` reads the value of a name.
    pub(super) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, String) -> JsonResult<()>,
    ) -> JsonResult<()> {
        let mut seen = HashSet::new();
        self.list(*b"{}", |json| {
            json.peek()?;
            let start = json.at;
            let name = json.string()?;
            if !seen.insert(name.clone()) {
                let problem = "the name is stated twice".to_owned();
                return Err(JsonError { at: start, path: name, problem });
            }
            json.take(b':').map_err(|error| error.within(&name))?;
            let path = name.clone();
            each(json, name).map_err(|error| error.within(&path))
        })
    }

    /// Reads an array; `each` reads the value of an index.
    pub(super) fn array(
        &mut self,
        mut each: impl FnMut(&mut Self, usize) -> JsonResult<()>,
    ) -> JsonResult<()> {
        let mut index = 0_usize;
        self.list(*b"[]", |json| {
            each(json, index)?;
            index = index.saturating_add(1);
            Ok(())
        })
    }

    pub(super) fn string(&mut self) -> JsonResult<String> {
        self.take(b'"')?;
        let start = self.at;
        let mut text = Vec::new();
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let (byte, length) = match rest {
                [b'"', ..] => break,
                [b'\\', escaped @ (b'"' | b'\\' | b'/'), ..] => (*escaped, 2),
                // Names and values of a descriptor are identifiers and numbers.
                [b'\\', ..] => return Err(self.error("the escape is not read")),
                [0..0x20, ..] => return Err(self.error("the string has a control character")),
                [byte, ..] => (*byte, 1),
                [] => return Err(self.error("the string has no end")),
            };
            if text.len() >= MAX_STRING {
                return Err(self.error(format!("the string has more than {MAX_STRING} bytes")));
            }
            text.push(byte);
            self.at = self.at.saturating_add(length);
        }
        self.take(b'"')?;
        let invalid = |_| JsonError { at: start, path: String::new(), problem: "not UTF-8".to_owned() };
        String::from_utf8(text).map_err(invalid)
    }

    /// Reads an integer or a string.
    pub(super) fn scalar(&mut self) -> JsonResult<Scalar> {
        if self.peek()? == b'"' {
            return self.string().map(Scalar::Text);
        }
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let digits = rest.get(..length).unwrap_or_default();
        let number = || {
            let text = std::str::from_utf8(digits).ok()?;
            if text.starts_with('+') {
                return None;
            }
            let signed = || text.parse::<i64>().ok().map(i64::cast_unsigned);
            text.parse::<u64>().ok().or_else(signed)
        };
        let number = number().ok_or_else(|| self.error("not an integer or a string"))?;
        self.at = self.at.saturating_add(length);
        Ok(Scalar::Number(number))
    }

    /// Skips a value.
    pub(super) fn skip(&mut self) -> JsonResult<()> {
        self.skip_at(0)
    }

    fn skip_at(&mut self, depth: u32) -> JsonResult<()> {
        if depth >= MAX_DEPTH {
            return Err(self.error("values are nested too deeply"));
        }
        let next = depth.saturating_add(1);
        match self.peek()? {
            b'{' => self.list(*b"{}", |json| {
                json.string()?;
                json.take(b':')?;
                json.skip_at(next)
            }),
            b'[' => self.list(*b"[]", |json| json.skip_at(next)),
            b'"' => self.string().map(drop),
            _ => {
                let rest = self.bytes.get(self.at..).unwrap_or_default();
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                match rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len()) {
                    0 => Err(self.error("not a value")),
                    length => {
                        self.at = self.at.saturating_add(length);
                        Ok(())
                    }
                }
            }
        }
    }

    /// Fails if something follows.
    pub(super) fn end(&mut self) -> JsonResult<()> {
        if self.peek().is_ok() {
            return Err(self.error("something follows the descriptor"));
        }
        if self.at < self.bytes.len() { Err(self.error("the comment has no end")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names and numbers of an object with arrays of one level.
    fn read(text: &str) -> JsonResult<Vec<(String, u64)>> {
        let mut json = Json::new(text.as_bytes());
        let mut values = Vec::new();
        json.object(|json, name| match json.peek()? {
            b'[' => json.array(|json, _| {
                let number = json.scalar()?.number();
                values.push((name.clone(), number.ok_or_else(|| json.error("no number"))?));
                Ok(())
            }),
            b'{' => json.skip(),
            _ => {
                let number = json.scalar()?.number();
                values.push((name, number.ok_or_else(|| json.error("no number"))?));
                Ok(())
            }
        })?;
        json.end().map(|()| values)
    }

    #[test]
    fn comments_commas_and_numbers_in_strings_are_read() {
        let text =
            "// a\n{ \"a\": 1, /* } */ \"b\": [\"0x10\", \"-1\",], \"c\": {\"d\": [true, {}, \"\"]},}\n//";
        let values = read(text).unwrap();
        let expected = [("a", 1), ("b", 16), ("b", u64::MAX)].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(values, expected);
        assert_eq!(read(r#"{"\"\/": -2}"#).unwrap(), [("\"/".to_owned(), u64::MAX - 1)]);
    }

    #[test]
    fn an_error_has_its_place_and_path() {
        let deep = format!(r#"{{"a": {{"b": {}"#, "[".repeat(100_000));
        let long = format!(r#"{{"a": "{}"}}"#, "x".repeat(600));
        let rows = [
            ("", 0, "", "the text ends early"),
            ("[", 0, "", "expected '{'"),
            ("{\"a\" 1}", 5, "a", "expected ':'"),
            ("{\"a\": 1 \"b\": 2}", 8, "", "expected a comma or the end"),
            ("{\"a\": 1, \"a\": 2}", 9, "a", "the name is stated twice"),
            ("{\"a\": [1, x]}", 10, "a", "not an integer or a string"),
            ("{\"a\": 1.5}", 6, "a", "not an integer or a string"),
            ("{\"a\": 18446744073709551616}", 6, "a", "not an integer or a string"),
            ("{\"a\": +1}", 6, "a", "not an integer or a string"),
            ("{\"a\": \"0x\"}", 10, "a", "no number"),
            ("{\"a\": \"0x+1\"}", 12, "a", "no number"),
            ("{\"a\": \"", 7, "a", "the string has no end"),
            ("{\"a\": \"\n\"}", 7, "a", "the string has a control character"),
            ("{\"a\": \"\\u0041\"}", 7, "a", "the escape is not read"),
            ("{\"a\": 1} x", 9, "", "something follows the descriptor"),
            ("{\"a\": 1} /*", 9, "", "the comment has no end"),
            ("{\"a\": {\"b\": }}", 12, "a", "not a value"),
            (&deep, 43, "a", "values are nested too deeply"),
            (&long, 519, "a", "the string has more than 512 bytes"),
        ];
        for (text, at, path, problem) in rows {
            let (path, problem) = (path.to_owned(), problem.to_owned());
            assert_eq!(read(text), Err(JsonError { at, path, problem }), "{text:.40}");
        }
        let mut json = Json::new(b"{\"a\": \"\xff\"}");
        assert_eq!(json.object(|json, _| json.skip()).unwrap_err().problem, "not UTF-8");
    }
}
