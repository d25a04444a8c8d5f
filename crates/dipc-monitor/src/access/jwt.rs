//! JSON Web Tokens of dotnet-monitor's API key.
//!
//! The configured key determines the algorithm: the algorithm stated by a token only has to agree with it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use p521::ecdsa::signature::Verifier as _;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::api_key::{ApiKey, Curve, PublicKey};

/// The audience of dotnet-monitor's tokens.
const AUDIENCE: &str = "https://github.com/dotnet/dotnet-monitor";
/// The difference between two clocks that is tolerated, as in ASP.NET Core.
const SKEW: Duration = Duration::from_secs(300);
/// Maximum length of a token in bytes.
const MAX_LENGTH: usize = 8 << 10;

/// A reason to refuse a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// Not a signed token.
    #[error("it is not a signed JSON Web Token")]
    Form,
    /// Signed with another algorithm than the key's, or not at all.
    #[error("its algorithm does not match the configured key")]
    Algorithm,
    /// The configured key has not signed it.
    #[error("its signature does not match the configured key")]
    Signature,
    /// Expired, or without an expiry.
    #[error("it has expired, or has no expiry")]
    Expired,
    /// Not valid yet.
    #[error("it is not valid yet")]
    Early,
    /// Issued for another audience.
    #[error("it is for another audience")]
    Audience,
    /// Issued by another issuer.
    #[error("it is from another issuer")]
    Issuer,
    /// Issued for another subject.
    #[error("it has another subject")]
    Subject,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    /// Extensions that a reader has to understand: none are supported.
    crit: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    iss: Option<String>,
    sub: Option<String>,
    aud: Option<Audience>,
    exp: Option<NumericDate>,
    nbf: Option<NumericDate>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// Seconds since 1970. dotnet-monitor writes them as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumericDate {
    Number(f64),
    Text(String),
}

impl NumericDate {
    fn time(&self) -> Option<SystemTime> {
        let seconds = match self {
            Self::Number(seconds) => *seconds,
            Self::Text(text) => text.parse::<u64>().ok().map(Duration::from_secs)?.as_secs_f64(),
        };
        UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
    }
}

/// The hash function of a signature.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sha {
    Sha256,
    Sha384,
    Sha512,
}

impl ApiKey {
    /// Checks a token at a time.
    ///
    /// # Errors
    /// If it is not valid.
    pub fn check(&self, token: &str, now: SystemTime) -> Result<(), JwtError> {
        if token.len() > MAX_LENGTH {
            return Err(JwtError::Form);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(JwtError::Form)?;
        let (header, claims) = message.split_once('.').ok_or(JwtError::Form)?;
        if claims.contains('.') {
            return Err(JwtError::Form);
        }
        let header: Header = part(header)?;
        if header.crit.is_some() {
            return Err(JwtError::Form);
        }
        let hash = self.key.hash_of(&header.alg).ok_or(JwtError::Algorithm)?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).map_err(|_| JwtError::Form)?;
        if !self.key.has_signed(hash, message.as_bytes(), &signature) {
            return Err(JwtError::Signature);
        }
        self.check_claims(&part(claims)?, now)
    }

    fn check_claims(&self, claims: &Claims, now: SystemTime) -> Result<(), JwtError> {
        let (early, late) = (now.checked_sub(SKEW).unwrap_or(now), now.checked_add(SKEW).unwrap_or(now));
        if claims.exp.as_ref().and_then(NumericDate::time).is_none_or(|end| end < early) {
            return Err(JwtError::Expired);
        }
        if let Some(start) = &claims.nbf
            && start.time().is_none_or(|start| start > late)
        {
            return Err(JwtError::Early);
        }
        let is_for_this = match &claims.aud {
            Some(Audience::One(audience)) => audience == AUDIENCE,
            Some(Audience::Many(list)) => list.iter().any(|audience| audience == AUDIENCE),
            None => false,
        };
        if !is_for_this {
            return Err(JwtError::Audience);
        }
        if claims.iss.as_ref() != Some(&self.issuer) {
            return Err(JwtError::Issuer);
        }
        if claims.sub.as_ref() != Some(&self.subject) {
            return Err(JwtError::Subject);
        }
        Ok(())
    }
}

/// Decodes a part of a token.
fn part<T: DeserializeOwned>(text: &str) -> Result<T, JwtError> {
    let json = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| JwtError::Form)?;
    serde_json::from_slice(&json).map_err(|_| JwtError::Form)
}

impl PublicKey {
    /// Returns the hash function of an algorithm; `None` if the key does not fit that algorithm.
    fn hash_of(&self, algorithm: &str) -> Option<Sha> {
        Some(match (self, algorithm) {
            (Self::Ec(Curve::P256, _), "ES256") | (Self::Rsa { .. }, "RS256") => Sha::Sha256,
            (Self::Ec(Curve::P384, _), "ES384") | (Self::Rsa { .. }, "RS384") => Sha::Sha384,
            (Self::Ec(Curve::P521, _), "ES512") | (Self::Rsa { .. }, "RS512") => Sha::Sha512,
            _ => return None,
        })
    }

    fn has_signed(&self, hash: Sha, message: &[u8], signature: &[u8]) -> bool {
        match self {
            // Ring does not have the curve.
            Self::Ec(Curve::P521, point) => {
                let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point);
                let signature = p521::ecdsa::Signature::from_slice(signature);
                key.is_ok_and(|key| signature.is_ok_and(|it| key.verify(message, &it).is_ok()))
            }
            Self::Ec(curve, point) => {
                let algorithm = match curve {
                    Curve::P256 => &signature::ECDSA_P256_SHA256_FIXED,
                    Curve::P384 | Curve::P521 => &signature::ECDSA_P384_SHA384_FIXED,
                };
                UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok()
            }
            Self::Rsa { modulus, exponent } => {
                let algorithm = match hash {
                    Sha::Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Sha::Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Sha::Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                };
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(algorithm, message, signature).is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests;
