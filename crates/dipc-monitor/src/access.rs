//! Tokens and their permissions.

mod api_key;
#[cfg(feature = "jwt")]
mod jwt;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "jwt")]
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

pub use api_key::{ApiKey, ApiKeyError};
#[cfg(feature = "jwt")]
pub use jwt::JwtError;

/// A part of the server's functions.
///
/// ```
/// use dipc_monitor::Scope;
///
/// assert_eq!(Scope::parse("artifacts"), Some(Scope::Artifacts));
/// assert_eq!((Scope::Admin.name(), Scope::parse("root")), ("admin", None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// Processes, operations and rules.
    Read,
    /// The values of counters.
    Metrics,
    /// Traces, heaps, dumps, log records, environments.
    Artifacts,
    /// Everything.
    Admin,
}

impl Scope {
    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "read" => Self::Read,
            "metrics" => Self::Metrics,
            "artifacts" => Self::Artifacts,
            "admin" => Self::Admin,
            _ => return None,
        })
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Metrics => "metrics",
            Self::Artifacts => "artifacts",
            Self::Admin => "admin",
        }
    }
}

/// Tokens with their scopes. Only hashes are kept.
///
/// A file has a token a line: its scopes, separated by commas, and the token, or `sha256:` and the token's
/// hash in hexadecimal digits. Lines that begin with `#` are comments.
///
/// ```
/// use dipc_monitor::{Scope, Tokens};
///
/// let tokens = Tokens::parse("# the scraper\nmetrics 0123456789abcdef\n")?;
/// assert_eq!(tokens.permits("0123456789abcdef", Scope::Metrics), Some(true));
/// assert_eq!(tokens.permits("0123456789abcdef", Scope::Artifacts), Some(false));
/// assert_eq!(tokens.permits("another", Scope::Metrics), None);
/// # Ok::<(), dipc_monitor::TokenError>(())
/// ```
///
/// Clones share the tokens of the file and the API key, which can change while they are used.
#[derive(Clone, Default)]
pub struct Tokens {
    /// Tokens of the file.
    list: Arc<Mutex<Vec<Token>>>,
    /// Added tokens, which are kept when the file changes.
    added: Vec<Token>,
    api_key: Arc<Mutex<ApiKeyState>>,
}

/// The API key of a configuration.
#[derive(Clone, Default)]
enum ApiKeyState {
    /// No key was set so far.
    #[default]
    Unset,
    /// Tokens of this key are accepted.
    Set(#[cfg_attr(not(feature = "jwt"), allow(dead_code, reason = "no token is checked by it"))] ApiKey),
    /// The key was removed from the configuration.
    Removed,
}

#[derive(Clone)]
struct Token {
    hash: [u8; 32],
    scopes: Vec<Scope>,
}

/// An error in a file of tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
#[non_exhaustive]
pub struct TokenError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The fault.
    pub what: String,
}

/// A file of tokens without any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has no tokens")]
pub struct NoTokens;

/// Minimum length of a token, in bytes: shorter ones can be guessed.
const MIN_LENGTH: usize = 16;

impl Tokens {
    /// Parses a file.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let mut tokens = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let error = |what: String| TokenError { line, what };
            let (names, token) = text
                .split_once(char::is_whitespace)
                .ok_or_else(|| error("a line has the scopes and the token: 'read,metrics TOKEN'".into()))?;
            let scope = |name: &str| {
                let known = "use read, metrics, artifacts or admin";
                Scope::parse(name).ok_or_else(|| error(format!("'{name}' is not a scope; {known}")))
            };
            let scopes = names.split(',').map(scope).collect::<Result<Vec<_>, _>>()?;
            let token = token.trim();
            let hash = match token.strip_prefix("sha256:") {
                Some(digits) => parse_hash(digits)
                    .ok_or_else(|| error("sha256: is followed by 64 hexadecimal digits".into()))?,
                None if token.len() < MIN_LENGTH => {
                    return Err(error(format!("the token is shorter than {MIN_LENGTH} characters")));
                }
                None => Sha256::digest(token.as_bytes()).into(),
            };
            tokens.push(Token { hash, scopes });
        }
        Ok(Self { list: Arc::new(Mutex::new(tokens)), ..Self::default() })
    }

    /// Replaces the tokens of the file with the tokens of another file, for all clones. Added tokens are
    /// kept.
    ///
    /// ```
    /// use dipc_monitor::{Scope, Tokens};
    ///
    /// let tokens = Tokens::parse("metrics 0123456789abcdef\n")?;
    /// // The file has changed.
    /// tokens.replace(&Tokens::parse("read fedcba9876543210\n")?)?;
    /// assert_eq!(tokens.permits("0123456789abcdef", Scope::Metrics), None);
    /// // A file without tokens is refused: it would permit everything to everyone.
    /// assert!(tokens.replace(&Tokens::parse("")?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file does not contain tokens: everyone could do everything. The tokens then stay the same.
    pub fn replace(&self, file: &Self) -> Result<(), NoTokens> {
        let tokens = file.list().clone();
        if tokens.is_empty() {
            return Err(NoTokens);
        }
        *self.list() = tokens;
        Ok(())
    }

    /// Adds a token with every scope.
    pub fn add_admin(&mut self, token: &str) {
        self.added.push(Token { hash: Sha256::digest(token.as_bytes()).into(), scopes: vec![Scope::Admin] });
    }

    /// Sets the API key of a configuration. Its tokens have every scope. This needs the feature `jwt`;
    /// without it no such token is accepted.
    pub fn set_api_key(&self, key: Option<ApiKey>) {
        let mut state = self.api_key();
        *state = match (key, &*state) {
            (Some(key), _) => ApiKeyState::Set(key),
            (None, ApiKeyState::Unset) => ApiKeyState::Unset,
            // Not everyone may do everything now.
            (None, ApiKeyState::Set(_) | ApiKeyState::Removed) => ApiKeyState::Removed,
        };
    }

    fn list(&self) -> MutexGuard<'_, Vec<Token>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn api_key(&self) -> MutexGuard<'_, ApiKeyState> {
        self.api_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true without tokens if an API key was never set.
    pub fn is_empty(&self) -> bool {
        self.list().is_empty() && self.added.is_empty() && matches!(*self.api_key(), ApiKeyState::Unset)
    }

    /// Returns true if a token permits a scope; `None` for unknown tokens. The time does not depend on how
    /// much of the token is right: its whole hash is compared with the hashes of all tokens.
    pub fn permits(&self, token: &str, scope: Scope) -> Option<bool> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let mut found = None;
        for known in self.list().iter().chain(&self.added) {
            let difference = known.hash.iter().zip(&hash).fold(0, |difference, (a, b)| difference | (a ^ b));
            if std::hint::black_box(difference) == 0 {
                let permits = known.scopes.iter().any(|it| *it == scope || *it == Scope::Admin);
                found = Some(found.unwrap_or(false) || permits);
            }
        }
        if found.is_none() && self.is_signed(token) {
            found = Some(true);
        }
        found
    }

    /// Returns true if it is a valid JSON Web Token of the API key.
    #[cfg(feature = "jwt")]
    fn is_signed(&self, token: &str) -> bool {
        // A token of a file usually does not contain dots: nothing is decoded for it.
        let key = match &*self.api_key() {
            ApiKeyState::Set(key) if token.contains('.') => key.clone(),
            _ => return false,
        };
        key.check(token, SystemTime::now()).is_ok()
    }

    #[cfg(not(feature = "jwt"))]
    #[allow(clippy::unused_self, reason = "as with the feature")]
    const fn is_signed(&self, _: &str) -> bool {
        false
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.list().len() + self.added.len())
    }
}

fn parse_hash(digits: &str) -> Option<[u8; 32]> {
    let bytes = digits.as_bytes();
    if bytes.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(bytes.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_itself_or_by_its_hash() {
        // printf %s 0123456789abcdef | sha256sum
        let hash = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";
        let tokens =
            Tokens::parse(&format!("read,metrics sha256:{hash}\n\n# all\nadmin  fedcba9876543210\n"));
        let tokens = tokens.unwrap();
        assert_eq!(tokens.permits("0123456789abcdef", Scope::Read), Some(true));
        assert_eq!(tokens.permits("0123456789abcdef", Scope::Artifacts), Some(false));
        assert_eq!(tokens.permits("fedcba9876543210", Scope::Artifacts), Some(true));
        assert_eq!(tokens.permits("", Scope::Read), None);
        assert_eq!(format!("{tokens:?}"), "Tokens(2)");
    }

    #[test]
    fn clones_have_the_tokens_of_another_file() {
        let mut tokens = Tokens::parse("read 0123456789abcdef").unwrap();
        tokens.add_admin("temporary-0123456789");
        let clone = tokens.clone();
        let permits = |token| clone.permits(token, Scope::Read);
        tokens.replace(&Tokens::parse("read fedcba9876543210").unwrap()).unwrap();
        assert_eq!((permits("0123456789abcdef"), permits("fedcba9876543210")), (None, Some(true)));
        assert_eq!(permits("temporary-0123456789"), Some(true));
        // Without tokens everyone could do everything.
        assert_eq!(tokens.replace(&Tokens::parse("# none\n").unwrap()), Err(NoTokens));
        assert_eq!(permits("fedcba9876543210"), Some(true));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line, what) in [
            ("read", 1, "the scopes and the token"),
            ("# x\nwrite 0123456789abcdef", 2, "'write' is not a scope"),
            ("read short", 1, "shorter than 16"),
            ("read sha256:12", 1, "64 hexadecimal digits"),
        ] {
            let error = Tokens::parse(text).unwrap_err();
            assert!(error.line == line && error.what.contains(what), "{text}: {error}");
        }
    }
}
