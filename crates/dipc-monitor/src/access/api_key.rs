//! dotnet-monitor's API key: the public key of tokens, as its configuration has it.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

/// The issuer that `dotnet monitor generatekey` writes into its tokens.
const ISSUER: &str = "https://github.com/dotnet/dotnet-monitor/generatekey+MonitorApiKey";
/// The sizes of RSA keys in bytes, of 2048 to 8192 bits.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
/// Maximum length of a key in a configuration, in characters.
const MAX_LENGTH: usize = 16 << 10;

/// Base64 of URLs with and without padding, as dotnet-monitor takes it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// dotnet-monitor's API key: JSON Web Tokens that its key has signed, and that have its subject and issuer,
/// permit everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub(super) subject: String,
    pub(super) issuer: String,
    pub(super) key: PublicKey,
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PublicKey {
    /// A point of a curve, uncompressed: 4, and its coordinates.
    Ec(Curve, Vec<u8>),
    /// The modulus and the exponent, without leading zeros.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

/// A curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// The bytes of a coordinate.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "P-256" => Self::P256,
            "P-384" => Self::P384,
            "P-521" => Self::P521,
            _ => return None,
        })
    }
}

impl ApiKey {
    /// Parses `Authentication:MonitorApiKey`. The key is a JSON Web Key in base64url. The default issuer is
    /// the issuer of `dotnet monitor generatekey`.
    ///
    /// # Errors
    /// If the key is not a public key that tokens can be signed with.
    pub fn parse(subject: &str, public_key: &str, issuer: Option<&str>) -> Result<Self, ApiKeyError> {
        let issuer = issuer.unwrap_or(ISSUER).to_owned();
        Ok(Self { subject: subject.to_owned(), issuer, key: PublicKey::parse(public_key)? })
    }
}

/// An error in the public key of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiKeyError {
    /// The key is not base64url.
    #[error("it is not base64url")]
    Encoding,
    /// The content is not a JSON Web Key.
    #[error("it is not a JSON Web Key in base64url")]
    Json,
    /// The private key is included.
    #[error("it has the private key: make another one, and keep its private part out of the configuration")]
    Private,
    /// The type of the key cannot sign tokens.
    #[error("the type of the key is neither EC nor RSA")]
    Type,
    /// The curve of the key is not supported.
    #[error("the curve of the key is not P-256, P-384 or P-521")]
    Curve,
    /// A number of the key is missing, or has a wrong length.
    #[error("{0} of the key is missing, or has a wrong length")]
    Member(&'static str),
}

impl PublicKey {
    fn parse(text: &str) -> Result<Self, ApiKeyError> {
        if text.len() > MAX_LENGTH {
            return Err(ApiKeyError::Encoding);
        }
        let json = BASE64.decode(text.trim()).map_err(|_| ApiKeyError::Encoding)?;
        let members: Map<String, Value> = serde_json::from_slice(&json).map_err(|_| ApiKeyError::Json)?;
        // .NET writes and reads them in any case: `Kty`.
        let member = |name: &str| {
            let found = members.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.and_then(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        };
        if ["d", "p", "q", "dp", "dq", "qi"].into_iter().any(|name| member(name).is_some()) {
            return Err(ApiKeyError::Private);
        }
        let number = |name: &'static str| {
            let bytes = member(name).and_then(|text| BASE64.decode(text).ok());
            bytes.ok_or(ApiKeyError::Member(name))
        };
        let kind = member("kty").unwrap_or_default();
        if kind.eq_ignore_ascii_case("EC") {
            let curve = member("crv").and_then(Curve::parse).ok_or(ApiKeyError::Curve)?;
            let mut point = vec![4];
            for name in ["x", "y"] {
                let coordinate = number(name)?;
                if coordinate.len() != curve.bytes() {
                    return Err(ApiKeyError::Member(name));
                }
                point.extend(coordinate);
            }
            return Ok(Self::Ec(curve, point));
        }
        if kind.eq_ignore_ascii_case("RSA") {
            let significant = |name| -> Result<Vec<u8>, ApiKeyError> {
                Ok(number(name)?.into_iter().skip_while(|byte| *byte == 0).collect())
            };
            let (modulus, exponent) = (significant("n")?, significant("e")?);
            if !RSA_BYTES.contains(&modulus.len()) {
                return Err(ApiKeyError::Member("n"));
            }
            if exponent.is_empty() || exponent.len() > 4 {
                return Err(ApiKeyError::Member("e"));
            }
            return Ok(Self::Rsa { modulus, exponent });
        }
        Err(ApiKeyError::Type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<ApiKey, ApiKeyError> {
        ApiKey::parse("s", &BASE64.encode(json), None)
    }

    #[test]
    fn keys_that_cannot_be_used_say_why() {
        let zeros = |count| BASE64.encode(vec![0; count]);
        let ec = |curve: &str, x, y| {
            format!(r#"{{"kty":"EC","crv":"{curve}","x":"{}","y":"{}"}}"#, zeros(x), zeros(y))
        };
        let rsa = |modulus, exponent: &str| {
            let modulus = BASE64.encode(vec![1; modulus]);
            format!(r#"{{"Kty":"RSA","N":"{modulus}","E":"{exponent}"}}"#)
        };
        for (json, expected) in [
            (ec("P-256", 32, 32), None),
            (ec("P-384", 48, 48), None),
            (ec("P-521", 66, 66), None),
            (ec("P-256", 32, 31), Some(ApiKeyError::Member("y"))),
            (ec("P-521", 65, 66), Some(ApiKeyError::Member("x"))),
            (ec("secp256k1", 32, 32), Some(ApiKeyError::Curve)),
            (rsa(256, "AQAB"), None),
            // 1024 bits.
            (rsa(128, "AQAB"), Some(ApiKeyError::Member("n"))),
            (rsa(1025, "AQAB"), Some(ApiKeyError::Member("n"))),
            (rsa(256, "AAAA"), Some(ApiKeyError::Member("e"))),
            (r#"{"kty":"oct","k":"AAAA"}"#.to_owned(), Some(ApiKeyError::Type)),
            (r#"{"kty":"EC","crv":"P-256","D":"AAAA"}"#.to_owned(), Some(ApiKeyError::Private)),
            ("[]".to_owned(), Some(ApiKeyError::Json)),
            ("{}".to_owned(), Some(ApiKeyError::Type)),
        ] {
            assert_eq!(parse(&json).err(), expected, "{json}");
        }
        assert_eq!(ApiKey::parse("s", "a+b/", None), Err(ApiKeyError::Encoding));
    }
}
