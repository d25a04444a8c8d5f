//! The text form of a list of providers, in the syntax of dotnet-trace's `--providers`.

use core::fmt;

use dipc_wire::{Keywords, Level, ProviderConfig};

/// The keywords of a provider without any in the list, as in dotnet-trace 10: only events that belong to no
/// keyword. (Up to version 9 the default was all keywords, `FFFFFFFFFFFFFFFF`.)
pub const DEFAULT_KEYWORDS: Keywords = Keywords::NONE;
/// The level of a provider without one in the list, as in dotnet-trace 10: informational. (Up to version 9:
/// verbose.)
pub const DEFAULT_LEVEL: Level = Level::INFORMATIONAL;

/// A list of providers with unique names, compared without case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Providers {
    list: Vec<ProviderConfig>,
}

impl Providers {
    /// A list without providers.
    pub const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// Parses `Name[:Keywords[:Level[:Arguments]]],…`.
    ///
    /// * A name with `,` `;` `:` or `=` stands in quotes, as keys and values do.
    /// * Keywords are hexadecimal, with or without `0x`; the default is [`DEFAULT_KEYWORDS`].
    /// * A level is a number (above 5 counts as 5) or a [name](Level::name) in any case; the default is
    ///   [`DEFAULT_LEVEL`].
    /// * Arguments are `key=value;key=value`. Quotes (`"`, or `\"` as many shells leave them) protect `,` `;`
    ///   and `=` in a key or a value.
    /// * A provider named twice gets the keywords of both and the wider level; only one occurrence may have
    ///   arguments.
    ///
    /// The error has the byte position in `text`.
    ///
    /// ```
    /// use dipc_client::Providers;
    /// use dipc_client::dipc_wire::{Keywords, Level};
    ///
    /// let providers = Providers::parse("Microsoft-Windows-DotNETRuntime:0x8001:4,MyApp")?;
    /// let runtime = providers.find("Microsoft-Windows-DotNETRuntime").expect("a provider");
    /// assert_eq!(runtime.keywords, Keywords::GC.union(Keywords::EXCEPTION));
    /// assert_eq!(runtime.level, Level::INFORMATIONAL);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseProvidersError> {
        let mut providers = Self::new();
        for piece in split(text, ',') {
            let config = parse_provider(text, piece)?;
            let name = config.name.clone();
            if providers.merge(config).is_err() {
                return Err(ParseProvidersError::new(text, piece.start, Reason::ArgumentsTwice(name)));
            }
        }
        Ok(providers)
    }

    /// Adds a provider, or merges it into the provider with that name: the keywords of both, the wider level,
    /// and the arguments of either.
    ///
    /// ```
    /// use dipc_client::{CPU_PROFILE, Profile, Providers};
    ///
    /// let mut providers = Providers::parse("MyApp")?;
    /// for provider in Profile::find(CPU_PROFILE).ok_or("unknown profile")?.providers {
    ///     providers.merge(provider.to_config())?;
    /// }
    /// assert!(providers.find("myapp").is_some() && providers.iter().count() > 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If both have arguments and these differ. Nothing is changed then.
    pub fn merge(&mut self, config: ProviderConfig) -> Result<(), ConflictingArguments> {
        let Some(known) = self.list.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&config.name))
        else {
            self.list.push(config);
            return Ok(());
        };
        let differ = known.arguments != config.arguments;
        if differ && !known.arguments.is_empty() && !config.arguments.is_empty() {
            return Err(ConflictingArguments { provider: config.name });
        }
        known.keywords |= config.keywords;
        known.level = known.level.widest(config.level);
        if known.arguments.is_empty() {
            known.arguments = config.arguments;
        }
        Ok(())
    }

    /// Returns the provider with that name, in any case.
    pub fn find(&self, name: &str) -> Option<&ProviderConfig> {
        self.list.iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The providers, in the order in which they were named.
    pub fn iter(&self) -> core::slice::Iter<'_, ProviderConfig> {
        self.list.iter()
    }

    /// Returns true if the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the providers as part of a request.
    pub fn into_vec(self) -> Vec<ProviderConfig> {
        self.list
    }
}

impl IntoIterator for Providers {
    type Item = ProviderConfig;
    type IntoIter = std::vec::IntoIter<ProviderConfig>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Providers {
    type Item = &'a ProviderConfig;
    type IntoIter = core::slice::Iter<'a, ProviderConfig>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Parses a level: a number, of which everything above 5 counts as 5, or a [name](Level::name) in any case.
///
/// ```
/// use dipc_client::dipc_wire::Level;
///
/// assert_eq!(dipc_client::parse_level("warning"), Some(Level::WARNING));
/// assert_eq!(dipc_client::parse_level("5"), Some(Level::VERBOSE));
/// ```
pub fn parse_level(text: &str) -> Option<Level> {
    if let Ok(number) = text.parse::<u32>() {
        return Some(Level(number).min(Level::VERBOSE));
    }
    let is_named = |level: &&Level| level.name().is_some_and(|name| name.eq_ignore_ascii_case(text));
    Level::NAMED.iter().find(is_named).copied()
}

/// Returns the names of all levels, separated by commas, for messages.
pub fn level_names() -> String {
    Level::NAMED.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A provider with arguments that differ from its arguments in the list: they cannot be joined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: named twice, each time with other arguments")]
#[non_exhaustive]
pub struct ConflictingArguments {
    /// The provider's name.
    pub provider: String,
}

/// The error in a provider list, with its position.
///
/// ```
/// use dipc_client::Providers;
///
/// let text = "MyApp:0x1:loud";
/// let error = Providers::parse(text).expect_err("not a level");
/// eprintln!("{text}\n{:>1$}\n{error}", "^", error.position() + 1);
/// assert_eq!(&text[error.position()..], "loud");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseProvidersError {
    text: String,
    position: usize,
    reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    NoName,
    NameHolds(char),
    Keywords(String),
    Level(String),
    NoEquals(String),
    EmptyKey,
    KeyTwice(String),
    OpenQuote,
    ArgumentsTwice(String),
}

impl ParseProvidersError {
    fn new(text: &str, position: usize, reason: Reason) -> Self {
        Self { text: text.to_owned(), position, reason }
    }

    /// The position of the error, in bytes from the start of the text.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The parsed text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ParseProvidersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Positions for users count characters from 1.
        let character = self.text.get(..self.position).map_or(0, |before| before.chars().count()) + 1;
        write!(f, "at character {character}: ")?;
        match &self.reason {
            Reason::NoName => f.write_str("a provider name is missing"),
            Reason::NameHolds(c) => write!(
                f,
                "a provider name with '{c}' needs quotes around it, as in '\"A,B\":0x1:4'; a comma inside an argument's value needs quotes around the value"
            ),
            Reason::Keywords(text) => write!(f, "keywords '{text}' are not a hexadecimal number of 64 bits"),
            Reason::Level(text) => {
                write!(f, "level '{text}' is neither a number nor one of {}", level_names())
            }
            Reason::NoEquals(text) => write!(f, "argument '{text}' has no '='"),
            Reason::EmptyKey => f.write_str("an argument's key is missing before '='"),
            Reason::KeyTwice(key) => write!(f, "argument '{key}' is given twice"),
            Reason::OpenQuote => f.write_str("a quote is opened here and never closed"),
            Reason::ArgumentsTwice(name) => {
                write!(f, "provider '{name}' is named twice, each time with other arguments")
            }
        }
    }
}

impl core::error::Error for ParseProvidersError {}

/// A part of a string with its position.
#[derive(Clone, Copy)]
struct Piece<'a> {
    start: usize,
    text: &'a str,
}

impl<'a> Piece<'a> {
    fn trimmed(self) -> Self {
        let text = self.text.trim_start();
        Self { start: self.start + (self.text.len() - text.len()), text: text.trim_end() }
    }

    /// The parts before and after the first `mark` outside quotes.
    fn split_once(self, mark: char) -> (Self, Option<Self>) {
        let mut quoted = false;
        for (at, c) in self.text.char_indices() {
            if c == '"' {
                quoted = !quoted;
            } else if c == mark && !quoted {
                let (before, after) = (&self.text[..at], &self.text[at + mark.len_utf8()..]);
                let start = self.start + at + mark.len_utf8();
                return (Self { start: self.start, text: before }, Some(Piece { start, text: after }));
            }
        }
        (self, None)
    }

    /// The parts between the `mark`s outside quotes.
    fn split(self, mark: char) -> impl Iterator<Item = Piece<'a>> {
        let mut rest = Some(self);
        core::iter::from_fn(move || {
            let (piece, after) = rest?.split_once(mark);
            rest = after;
            Some(piece)
        })
    }
}

fn split(text: &str, mark: char) -> impl Iterator<Item = Piece<'_>> {
    Piece { start: 0, text }.split(mark)
}

fn parse_provider(whole: &str, piece: Piece<'_>) -> Result<ProviderConfig, ParseProvidersError> {
    let fail = |at: usize, reason| Err(ParseProvidersError::new(whole, at, reason));
    let (name, rest) = piece.split_once(':');
    let (keywords, rest) = rest.map_or((None, None), |rest| {
        let (a, b) = rest.split_once(':');
        (Some(a), b)
    });
    let (level, arguments) = rest.map_or((None, None), |rest| {
        let (a, b) = rest.split_once(':');
        (Some(a), b)
    });

    let name = name.trimmed();
    if name.text.is_empty() {
        return fail(name.start, Reason::NoName);
    }
    let name = parse_name(whole, name)?;
    let keywords = match keywords.map(Piece::trimmed).filter(|piece| !piece.text.is_empty()) {
        None => DEFAULT_KEYWORDS,
        Some(piece) => match parse_keywords(piece.text) {
            Some(keywords) => keywords,
            None => return fail(piece.start, Reason::Keywords(piece.text.to_owned())),
        },
    };
    let level = match level.map(Piece::trimmed).filter(|piece| !piece.text.is_empty()) {
        None => DEFAULT_LEVEL,
        Some(piece) => match parse_level(piece.text) {
            Some(level) => level,
            None => return fail(piece.start, Reason::Level(piece.text.to_owned())),
        },
    };
    let arguments = match arguments {
        None => String::new(),
        Some(piece) => parse_arguments(whole, piece)?,
    };
    Ok(ProviderConfig { keywords, level, name, arguments })
}

/// Parses a name, which may stand in quotes.
fn parse_name(whole: &str, piece: Piece<'_>) -> Result<String, ParseProvidersError> {
    let fail = |at: usize, reason| Err(ParseProvidersError::new(whole, piece.start + at, reason));
    if piece.text.matches('"').count() % 2 == 1 {
        return fail(piece.text.find('"').unwrap_or(0), Reason::OpenQuote);
    }
    let is_quoted = piece.text.starts_with('"') || piece.text.starts_with("\\\"");
    if is_quoted {
        let name = unquoted(piece.text);
        return match name.as_str() {
            "" => fail(0, Reason::NoName),
            name if name.contains('"') => fail(0, Reason::NameHolds('"')),
            _ => Ok(name),
        };
    }
    match piece.text.char_indices().find(|(_, c)| matches!(c, '=' | ';' | '"')) {
        Some((at, c)) => fail(at, Reason::NameHolds(c)),
        None => Ok(piece.text.to_owned()),
    }
}

fn parse_keywords(text: &str) -> Option<Keywords> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    // `from_str_radix` alone would take a sign.
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        u64::from_str_radix(digits, 16).ok().map(Keywords)
    } else {
        None
    }
}

/// Parses the arguments and formats them as the runtime expects them: quotes only for keys and values that
/// need them.
fn parse_arguments(whole: &str, piece: Piece<'_>) -> Result<String, ParseProvidersError> {
    let fail = |at: usize, reason| Err(ParseProvidersError::new(whole, at, reason));
    if piece.text.matches('"').count() % 2 == 1 {
        return fail(piece.start + piece.text.rfind('"').unwrap_or(0), Reason::OpenQuote);
    }
    let mut keys: Vec<String> = Vec::new();
    let mut written = String::new();
    for pair in piece.split(';').filter(|pair| !pair.text.trim().is_empty()) {
        let (key_piece, value) = pair.split_once('=');
        let Some(value) = value else {
            return fail(pair.start, Reason::NoEquals(pair.text.to_owned()));
        };
        let key = unquoted(key_piece.text.trim());
        if key.is_empty() {
            return fail(pair.start, Reason::EmptyKey);
        }
        if keys.contains(&key) {
            return fail(pair.start, Reason::KeyTwice(key));
        }
        if !written.is_empty() {
            written.push(';');
        }
        push_quoted(&mut written, &key);
        written.push('=');
        push_quoted(&mut written, &unquoted(value.text));
        keys.push(key);
    }
    Ok(written)
}

/// Returns the text without the escapes that users write for their shell (`\"`, `\\`, `\n`, `\r`, `\t`) and
/// without the enclosing quotes.
fn unquoted(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('t') => plain.push('\t'),
            Some(c @ ('"' | '\\')) => plain.push(c),
            Some(other) => plain.extend(['\\', other]),
            None => plain.push('\\'),
        }
    }
    match plain.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.to_owned(),
        None => plain,
    }
}

fn push_quoted(out: &mut String, text: &str) {
    let quoted = text.contains([';', '=']);
    out.extend(quoted.then_some('"'));
    out.push_str(text);
    out.extend(quoted.then_some('"'));
}

#[cfg(test)]
mod tests;
