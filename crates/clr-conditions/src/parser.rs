//! The parser of conditions.

use std::time::Duration;

use clr_counters::Comparison;
use clr_events::{Glob, Provider, Schema};

use crate::condition::{Atom, Condition, Node};
use crate::duration::parse_duration;
use crate::error::ParseError;
use crate::exception::ExceptionTypes;
use crate::field::{Bound, FieldCondition};
use crate::system::SystemSubject;
use crate::token::{Token, TokenKind, tokens};

/// Maximum number of parts: each has a bit of a word.
pub(crate) const MAX_ATOMS: usize = 64;
/// Maximum nesting depth of parentheses.
const MAX_DEPTH: usize = 32;
/// The default time within which parts joined by `and` have to be met.
const WITHIN: Duration = Duration::from_secs(10);

const KINDS: &str = "exception, event, gc, request, counter, exit, crash or disconnect";
/// The same for rules of a monitor.
const KINDS_OF_RULES: &str =
    "exception, event, gc, request, counter, process, container, native, exit, crash or disconnect";

impl Condition {
    /// Parses a condition.
    ///
    /// ```
    /// use clr_conditions::Condition;
    ///
    /// assert!(Condition::parse("request > 2s and counter cpu-usage > 80 within 30s").is_ok());
    /// // Counters without a known provider are only for `parse_for_counters`.
    /// assert!(Condition::parse("counter orders > 5").is_err());
    /// ```
    ///
    /// # Errors
    /// With the position of the first text outside the language, and the expected text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse(text, Extent::default())
    }

    /// Parses a condition for a session that requests counters anyway. A counter of an unknown provider is
    /// among these counters; see [`requests_with`](Self::requests_with) and
    /// [`Evaluator::with_counters`](crate::Evaluator::with_counters).
    ///
    /// # Errors
    /// As for [`parse`](Self::parse), except for counters of unknown providers.
    pub fn parse_for_counters(text: &str) -> Result<Self, ParseError> {
        parse(text, Extent { has_counters: true, has_system: false })
    }

    /// Parses a condition for a program that also watches the system's values of a process and its container;
    /// see [`system_values`](Self::system_values).
    ///
    /// ```
    /// use clr_conditions::Condition;
    ///
    /// assert!(Condition::parse_for_rules("container memory > 90%").is_ok());
    /// assert!(Condition::parse("container memory > 90%").is_err());
    /// ```
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn parse_for_rules(text: &str) -> Result<Self, ParseError> {
        parse(text, Extent { has_counters: false, has_system: true })
    }
}

/// The parts of the language that not every program has.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    /// True if the session has counters: then a counter may be named without its provider.
    has_counters: bool,
    /// True if the values of the system are watched.
    has_system: bool,
}

/// Parses a condition.
fn parse(text: &str, extent: Extent) -> Result<Condition, ParseError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens: &tokens, atoms: Vec::new(), extent };
    let root = parser.any(0)?;
    if let Some(token) = parser.tokens.first() {
        return Err(parser.error_at(token.offset, "'and', 'or' or the end is expected"));
    }
    Ok(Condition { atoms: parser.atoms, root })
}

struct Parser<'t> {
    text: &'t str,
    /// The remaining tokens.
    tokens: &'t [Token],
    atoms: Vec<Atom>,
    extent: Extent,
}

impl<'t> Parser<'t> {
    fn error_at(&self, offset: usize, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, offset, message)
    }

    /// The offset of the next token.
    fn offset(&self) -> usize {
        self.tokens.first().map_or(self.text.len(), |token| token.offset)
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(self.error_at(self.offset(), message))
    }

    fn next(&mut self) -> Option<&'t Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn peek(&self) -> Option<&'t TokenKind> {
        self.tokens.first().map(|token| &token.kind)
    }

    /// Takes a keyword, in any case, if it is next.
    fn take_word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek(), Some(TokenKind::Word(next)) if next.eq_ignore_ascii_case(word));
        if is_next {
            self.next();
        }
        is_next
    }

    fn take(&mut self, kind: &TokenKind) -> bool {
        let is_next = self.peek() == Some(kind);
        if is_next {
            self.next();
        }
        is_next
    }

    /// Takes a word or a quoted text. A word that joins conditions does not count.
    fn text(&mut self, what: &str) -> Result<&'t str, ParseError> {
        match self.peek() {
            Some(TokenKind::Word(word)) if !is_reserved(word) => {}
            Some(TokenKind::Quoted(_)) => {}
            _ => return self.error(format!("{what} is expected")),
        }
        match self.next().map(|token| &token.kind) {
            Some(TokenKind::Word(text) | TokenKind::Quoted(text)) => Ok(text),
            _ => self.error(format!("{what} is expected")),
        }
    }

    fn comparison(&mut self) -> Result<Comparison, ParseError> {
        match self.peek() {
            Some(TokenKind::Comparison(comparison)) => {
                self.next();
                Ok(*comparison)
            }
            _ => self.error("a comparison is expected: > >= < <= = !="),
        }
    }

    fn time(&mut self) -> Result<Duration, ParseError> {
        let offset = self.offset();
        let text = self.text("a time, as 500ms or 2s,")?;
        parse_duration(text).map_err(|_| self.error_at(offset, "a time is expected: 500ms, 2s, 1m30s"))
    }

    fn any(&mut self, depth: usize) -> Result<Node, ParseError> {
        let mut parts = vec![self.all(depth)?];
        while self.take_word("or") {
            parts.push(self.all(depth)?);
        }
        Ok(single(parts, Node::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Node, ParseError> {
        let mut parts = vec![self.part(depth)?];
        while self.take_word("and") {
            parts.push(self.part(depth)?);
        }
        let offset = self.offset();
        let within = if self.take_word("within") {
            if parts.len() == 1 {
                return Err(self.error_at(offset, "'within' follows conditions that 'and' joins"));
            }
            self.time()?
        } else {
            WITHIN
        };
        Ok(single(parts, |parts| Node::All(parts, within)))
    }

    fn part(&mut self, depth: usize) -> Result<Node, ParseError> {
        let offset = self.offset();
        if self.take(&TokenKind::Open) {
            if depth >= MAX_DEPTH {
                return Err(self.error_at(offset, format!("more than {MAX_DEPTH} parentheses are open")));
            }
            let inner = self.any(depth.saturating_add(1))?;
            if !self.take(&TokenKind::Close) {
                return self.error("')' is expected");
            }
            return Ok(inner);
        }
        let atom = self.atom()?;
        if self.atoms.len() >= MAX_ATOMS {
            return Err(self.error_at(offset, format!("a condition has {MAX_ATOMS} parts at most")));
        }
        self.atoms.push(atom);
        Ok(Node::Atom(self.atoms.len().saturating_sub(1)))
    }

    fn atom(&mut self) -> Result<Atom, ParseError> {
        // `GC Heap Size > 500` begins like another condition.
        let name = self.name_before_comparison();
        if name.as_ref().is_some_and(|name| name.contains(' ') && clr_counters::is_counter_of_dotnet(name)) {
            return self.counter();
        }
        if let Some(subject) = self.system_subject() {
            return self.system(subject);
        }
        if self.take_word("exception") {
            return self.exception();
        }
        if self.take_word("event") {
            return self.event();
        }
        if self.take_word("gc") {
            self.take_word("pause");
            return Ok(Atom::Pause(self.comparison()?, self.time()?));
        }
        if self.take_word("request") {
            return self.request();
        }
        if self.take_word("exit") {
            return Ok(Atom::Exit);
        }
        if self.take_word("crash") {
            return Ok(Atom::Crash);
        }
        if self.take_word("disconnect") {
            return Ok(Atom::Disconnect);
        }
        if self.take_word("counter") || name.is_some() {
            return self.counter();
        }
        let kinds = if self.extent.has_system { KINDS_OF_RULES } else { KINDS };
        self.error(format!("a condition is expected: {kinds}"))
    }

    /// Returns the value of the system that is next: of the container, of the process or of its native code,
    /// its memory or its processor time.
    fn system_subject(&self) -> Option<SystemSubject> {
        let word = |place: usize| match &self.tokens.get(place)?.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        };
        SystemSubject::of(word(0)?, word(1)?)
    }

    fn system(&mut self, subject: SystemSubject) -> Result<Atom, ParseError> {
        if !self.extent.has_system {
            return self
                .error("memory and processor time of the system are known to rules of dipc monitor only");
        }
        self.next();
        self.next();
        let comparison = self.comparison()?;
        let offset = self.offset();
        let text = self.text("an amount")?;
        let (value, bound) =
            subject.parse_bound(text).ok_or_else(|| self.error_at(offset, subject.expected()))?;
        let lasting = if self.take_word("for") { self.time()? } else { Duration::ZERO };
        Ok(Atom::System { value, comparison, bound, lasting })
    }

    fn exception(&mut self) -> Result<Atom, ParseError> {
        let mut types = Vec::new();
        if matches!(self.peek(), Some(TokenKind::Word(word)) if !is_reserved(word))
            || matches!(self.peek(), Some(TokenKind::Quoted(_)))
        {
            types.push(Glob::new(self.text("a type")?));
            while self.take(&TokenKind::Comma) {
                types.push(Glob::new(self.text("a type")?));
            }
        }
        Ok(Atom::Exception(ExceptionTypes(types)))
    }

    fn event(&mut self) -> Result<Atom, ParseError> {
        let offset = self.offset();
        let asked = self.text("PROVIDER/EVENT")?;
        let (provider, name) = match asked.split_once('/') {
            Some((provider, name)) => (provider, Some(name)),
            None => (asked, None),
        };
        if provider.is_empty() || name == Some("") {
            return Err(self.error_at(offset, "a provider and an event are expected, as PROVIDER/EVENT"));
        }
        let (provider, name) = (Glob::new(provider), name.map(Glob::new));
        let schemas = schemas(&provider, name.as_ref()).map_err(|message| self.error_at(offset, message))?;
        let mut fields = Vec::new();
        let is_where = self.take_word("where");
        loop {
            let is_field = match self.peek() {
                Some(TokenKind::Word(word)) => !is_reserved(word),
                Some(TokenKind::Quoted(_)) => true,
                _ => false,
            };
            if !is_field && (!fields.is_empty() || is_where) {
                return self.error("a field is expected");
            }
            if !is_field {
                break;
            }
            let offset = self.offset();
            let field = self.field()?;
            if let Some(schemas) = &schemas {
                check_field(schemas, &field.name).map_err(|message| self.error_at(offset, message))?;
            }
            fields.push(field);
            if !self.take(&TokenKind::Comma) {
                break;
            }
        }
        Ok(Atom::Event { provider, name, fields })
    }

    /// `NAME > VALUE`, or `NAME:VALUE` as dotnet-trace writes it.
    fn field(&mut self) -> Result<FieldCondition, ParseError> {
        let name = self.text("a field")?;
        if let Some((name, value)) = name.split_once(':').filter(|(name, _)| !name.is_empty()) {
            let value = if value.is_empty() { self.text("a value")? } else { value };
            return Ok(FieldCondition {
                name: name.to_owned(),
                comparison: Comparison::Equal,
                bound: Bound::new(value),
            });
        }
        let comparison = self.comparison()?;
        let offset = self.offset();
        let bound = Bound::new(self.text("a value")?);
        if comparison.is_ordered() && bound.number.is_none() {
            return Err(self.error_at(offset, "a number is expected: texts are equal or not"));
        }
        Ok(FieldCondition { name: name.to_owned(), comparison, bound })
    }

    fn request(&mut self) -> Result<Atom, ParseError> {
        let (mut duration, mut status, mut path) = (None, None, None);
        loop {
            let offset = self.offset();
            let is_bare = matches!(self.peek(), Some(TokenKind::Comparison(_)));
            if is_bare || self.take_word("duration") {
                let comparison = self.comparison()?;
                if duration.replace((comparison, self.time()?)).is_some() {
                    return Err(self.error_at(offset, "the duration is named twice"));
                }
            } else if self.take_word("status") {
                let comparison = self.comparison()?;
                let place = self.offset();
                let number = self.text("a status")?.parse().ok();
                let number = number.ok_or_else(|| self.error_at(place, "a status is expected, as 500"))?;
                if status.replace((comparison, number)).is_some() {
                    return Err(self.error_at(offset, "the status is named twice"));
                }
            } else if self.take_word("path") {
                let comparison = matches!(self.peek(), Some(TokenKind::Comparison(Comparison::Equal)));
                if comparison {
                    self.next();
                }
                if path.replace(Glob::new(self.text("a path")?)).is_some() {
                    return Err(self.error_at(offset, "the path is named twice"));
                }
            } else {
                break;
            }
        }
        if duration.is_none() && status.is_none() && path.is_none() {
            return self
                .error("a time, 'status' or 'path' is expected, as request > 2s or request status >= 500");
        }
        Ok(Atom::Request { duration, status, path })
    }

    /// The words before the next comparison, with blanks between them, if nothing else precedes it.
    fn name_before_comparison(&self) -> Option<String> {
        let mut name = String::new();
        for token in self.tokens {
            match &token.kind {
                TokenKind::Word(word) if is_reserved(word) => return None,
                TokenKind::Word(word) | TokenKind::Quoted(word) => {
                    if !name.is_empty() {
                        name.push(' ');
                    }
                    name.push_str(word);
                }
                TokenKind::Comparison(_) => return Some(name).filter(|name| !name.is_empty()),
                _ => return None,
            }
        }
        None
    }

    fn counter(&mut self) -> Result<Atom, ParseError> {
        let offset = self.offset();
        let mut name = self.text("a counter")?.to_owned();
        // A display name has blanks.
        while let Some(TokenKind::Word(_) | TokenKind::Quoted(_)) = self.peek() {
            name.push(' ');
            name.push_str(self.text("a comparison")?);
        }
        let comparison = self.comparison()?;
        let place = self.offset();
        let bound = self.text("a number")?.parse::<f64>().ok().filter(|bound| !bound.is_nan());
        let bound = bound.ok_or_else(|| self.error_at(place, "a number is expected"))?;
        let condition = clr_counters::Condition::new(&name, comparison, bound)
            .map_err(|error| self.error_at(offset, error.to_string()))?;
        let selection = condition.selection();
        if selection.is_none() && !self.extent.has_counters {
            let counter = name.rsplit_once(':').map_or(&*name, |(counter, _)| counter);
            let message = format!("the provider of {counter:?} is not known: name it, as PROVIDER/{counter}");
            return Err(self.error_at(offset, message));
        }
        Ok(Atom::Counter { condition, selection })
    }
}

fn single(mut parts: Vec<Node>, join: impl FnOnce(Vec<Node>) -> Node) -> Node {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => join(parts),
    }
}

fn is_reserved(word: &str) -> bool {
    ["and", "or", "within"].iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

/// The schemas of the matching runtime events; `None` if the provider is not the runtime's.
fn schemas(provider: &Glob, name: Option<&Glob>) -> Result<Option<Vec<&'static Schema>>, String> {
    let known: Vec<Provider> =
        Provider::ALL.iter().copied().filter(|known| provider.matches(known.name())).collect();
    let Some(name) = name else { return Ok(None) };
    if known.is_empty() || provider.is_pattern() {
        return Ok(None);
    }
    let all = known.iter().flat_map(|provider| Schema::all(*provider));
    let found: Vec<_> = all.filter(|schema| name.matches_event(schema.name)).collect();
    // Some events have only the manifest's name in the table, and the collector defines others at run time.
    if found.is_empty() && !name.is_pattern() && !name.lower().starts_with("gc/") {
        let nearest = nearest(&known, name.lower());
        let hint = nearest.map(|name| format!("; there is {name}")).unwrap_or_default();
        return Err(format!("the provider has no event of this name{hint}"));
    }
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// An event with the same task or the same suffix in its name.
fn nearest(providers: &[Provider], name: &str) -> Option<&'static str> {
    let names = || providers.iter().flat_map(|provider| Schema::all(*provider)).map(|schema| schema.name);
    let (task, end) = name.split_once('/').unwrap_or((name, name));
    names()
        .find(|known| known.to_lowercase().starts_with(task))
        .or_else(|| names().find(|known| known.to_lowercase().ends_with(end)))
}

/// Refuses a field that none of the events has.
fn check_field(schemas: &[&'static Schema], name: &str) -> Result<(), String> {
    let first = name.split('.').next().unwrap_or(name);
    let fields = || schemas.iter().flat_map(|schema| schema.fields).map(nettrace::schema::Field::name);
    if fields().any(|field| field.eq_ignore_ascii_case(first)) {
        return Ok(());
    }
    let mut names: Vec<_> = fields().collect();
    names.sort_unstable();
    names.dedup();
    Err(format!("the event has no field {name:?}; it has {}", names.join(", ")))
}
