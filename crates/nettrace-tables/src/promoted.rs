//! Columns for event fields without a column of their own.

use std::fmt;
use std::str::FromStr;

/// The folder with a file for each promoted column. Engines skip names that begin with `_`.
pub const PROMOTED_FOLDER: &str = "_promoted";

/// Maximum length of a name of a column.
const MAX_LENGTH: usize = 120;

/// A column of `events` for a field of an event: `Provider/Event.field`.
///
/// The column's name is derived from the field's, in characters that all engines accept:
/// `p_shop_order_total`. The column is null for events of another kind, and for values of another type.
///
/// ```
/// use nettrace_tables::{PromotedColumn, PromotedType};
///
/// let total: PromotedColumn = "Shop/Order.Total:double".parse()?;
/// assert_eq!((total.name(), total.field()), ("p_shop_order_total", "Total"));
/// assert_eq!(total.kind(), PromotedType::Double);
/// assert!("Shop.Total".parse::<PromotedColumn>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PromotedColumn {
    name: String,
    provider: String,
    event: String,
    field: String,
    kind: PromotedType,
}

/// The type of a promoted column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PromotedType {
    /// UTF-8.
    #[default]
    Text,
    /// 64 bits, signed. Unsigned numbers keep their bits.
    Long,
    /// A 64-bit float.
    Double,
    /// True or false.
    Bool,
}

impl PromotedType {
    const ALL: [(&'static str, Self); 4] =
        [("text", Self::Text), ("long", Self::Long), ("double", Self::Double), ("bool", Self::Bool)];

    /// The word for the type: `text`, `long`, `double` or `bool`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

impl PromotedColumn {
    /// The name of the column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the column.
    pub const fn kind(&self) -> PromotedType {
        self.kind
    }

    /// The provider of the events.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The name of the events, `GC/Start` for example.
    pub fn event(&self) -> &str {
        &self.event
    }

    /// The name of the field.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns true if the column is for events of this name, in any letter case.
    pub fn is_of(&self, provider: &str, event: &str) -> bool {
        self.provider.eq_ignore_ascii_case(provider) && self.event.eq_ignore_ascii_case(event)
    }

    /// Returns true if two columns are the same except for letter case.
    pub fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.field.eq_ignore_ascii_case(&other.field)
            && other.is_of(&self.provider, &self.event)
    }
}

/// Writes `Provider/Event.field:type`, which [parses](str::parse) back.
impl fmt::Display for PromotedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}.{}:{}", self.provider, self.event, self.field, self.kind.name())
    }
}

/// Parses `Provider/Event.field`, followed by `:text`, `:long`, `:double` or `:bool`. Without a type it is
/// text. The event's name ends at the last dot.
impl FromStr for PromotedColumn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, kind) = match text.rsplit_once(':') {
            None => (text, PromotedType::default()),
            Some((path, word)) => match PromotedType::ALL.iter().find(|(name, _)| *name == word) {
                Some((_, kind)) => (path, *kind),
                None => {
                    return Err(format!(
                        "'{}' is not a type: use text, long, double or bool",
                        word.escape_debug()
                    ));
                }
            },
        };
        let wrong = || format!("'{}' is not of the form Provider/Event.field[:type]", text.escape_debug());
        let (provider, rest) = path.split_once('/').ok_or_else(wrong)?;
        let (event, field) = rest.rsplit_once('.').ok_or_else(wrong)?;
        let parts = [provider, event, field];
        if parts.iter().any(|part| part.is_empty()) || path.contains(['*', '\n', '\r', '\0']) {
            return Err(wrong());
        }
        let mut name = String::from("p");
        for part in parts {
            name.push('_');
            let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
            name.extend(part.chars().map(letter));
        }
        if name.len() > MAX_LENGTH {
            return Err(format!("'{}' is too long for the name of a column", text.escape_debug()));
        }
        let [provider, event, field] = parts.map(str::to_owned);
        Ok(Self { name, provider, event, field, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_with_their_event_and_type() {
        for (text, name, shown) in [
            ("Shop/Order.Total:double", "p_shop_order_total", "Shop/Order.Total:double"),
            (
                "Microsoft-Windows-DotNETRuntime/GC/Start.Depth:long",
                "p_microsoft_windows_dotnetruntime_gc_start_depth",
                "Microsoft-Windows-DotNETRuntime/GC/Start.Depth:long",
            ),
            ("A.B/C.D.e", "p_a_b_c_d_e", "A.B/C.D.e:text"),
            ("Sh\"o'p/O;--.x y:bool", "p_sh_o_p_o____x_y", "Sh\"o'p/O;--.x y:bool"),
            ("ü/ä.ö:text", "p______", "ü/ä.ö:text"),
        ] {
            let column: PromotedColumn = text.parse().unwrap();
            assert_eq!((column.name(), column.to_string().as_str()), (name, shown));
            assert_eq!(shown.parse::<PromotedColumn>().unwrap(), column);
        }
    }

    #[test]
    fn rejects_unknown_fields() {
        for text in
            ["", "x", "a/b", "a.b", "/a.b", "a/.b", "a/b.", "a/*.b", "a/b\n.c", "a/b.c:int", "a:b/c.d"]
        {
            assert!(text.parse::<PromotedColumn>().is_err(), "{text}");
        }
        assert!(
            format!("a/{}.c", "b".repeat(200)).parse::<PromotedColumn>().unwrap_err().contains("too long")
        );
    }
}
