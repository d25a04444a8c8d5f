//! Tokens that Python's `cryptography` has made, which is OpenSSL: `testdata/monitor/tokens.py`.

use serde_json::Value;

use super::*;
use crate::access::{Scope, Tokens};

fn tokens() -> Value {
    serde_json::from_slice(&testdata::bytes("monitor/tokens.json")).unwrap()
}

fn key(tokens: &Value, public_key: &Value) -> ApiKey {
    ApiKey::parse(tokens["subject"].as_str().unwrap(), public_key.as_str().unwrap(), None).unwrap()
}

fn now(tokens: &Value) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(tokens["now"].as_u64().unwrap())
}

#[test]
fn tokens_of_every_algorithm_are_accepted() {
    let tokens = tokens();
    let mut algorithms = Vec::new();
    for row in tokens["accepted"].as_array().unwrap() {
        let key = key(&tokens, &row["publicKey"]);
        let token = row["token"].as_str().unwrap();
        assert_eq!(key.check(token, now(&tokens)), Ok(()), "{}", row["algorithm"]);
        // Every bit of the signature counts.
        let at = token.len() - 9;
        let other = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
        let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
        assert_eq!(key.check(&changed, now(&tokens)), Err(JwtError::Signature), "{}", row["algorithm"]);
        algorithms.push(row["algorithm"].as_str().unwrap());
    }
    assert_eq!(algorithms, ["ES256", "ES384", "ES512", "RS256", "RS384", "RS512"]);
    let key = key(&tokens, &tokens["publicKey"]);
    for (name, token) in tokens["alsoAccepted"].as_object().unwrap() {
        assert_eq!(key.check(token.as_str().unwrap(), now(&tokens)), Ok(()), "{name}");
    }
}

#[test]
fn every_other_token_is_refused_for_its_reason() {
    let tokens = tokens();
    let key = key(&tokens, &tokens["publicKey"]);
    let refused = tokens["refused"].as_object().unwrap();
    assert_eq!(refused.len(), 31);
    for (name, row) in refused {
        let error = key.check(row["token"].as_str().unwrap(), now(&tokens)).unwrap_err();
        assert_eq!(format!("{error:?}"), row["error"].as_str().unwrap(), "{name}");
    }
    for text in ["", ".", "..", "...", "e30.e30.", &"a".repeat(9000)] {
        assert_eq!(key.check(text, now(&tokens)), Err(JwtError::Form), "{text:.20}");
    }
    // The issuer can be chosen.
    let (subject, public_key) = (tokens["subject"].as_str().unwrap(), tokens["publicKey"].as_str().unwrap());
    let other = ApiKey::parse(subject, public_key, Some("me")).unwrap();
    let token = tokens["refused"]["another issuer"]["token"].as_str().unwrap();
    assert_eq!(other.check(token, now(&tokens)), Ok(()));
    assert_eq!(other.check(tokens["forEver"].as_str().unwrap(), now(&tokens)), Err(JwtError::Issuer));
}

#[test]
fn a_jwt_permits_everything_next_to_tokens_of_a_file() {
    let tokens = tokens();
    let known = Tokens::parse("read 0123456789abcdef\n").unwrap();
    let token = tokens["forEver"].as_str().unwrap();
    assert_eq!(known.permits(token, Scope::Read), None);
    known.set_api_key(Some(key(&tokens, &tokens["publicKey"])));
    assert_eq!(known.permits(token, Scope::Artifacts), Some(true));
    assert_eq!(known.permits(tokens["expired"].as_str().unwrap(), Scope::Read), None);
    assert_eq!(known.permits("0123456789abcdef", Scope::Artifacts), Some(false));
    // Without its key a token is not known, and requests still need one.
    known.set_api_key(None);
    assert_eq!(known.permits(token, Scope::Read), None);
    let keyed = Tokens::default();
    keyed.set_api_key(Some(key(&tokens, &tokens["publicKey"])));
    assert!(!keyed.is_empty());
    keyed.set_api_key(None);
    assert!(!keyed.is_empty());
}

mod random {
    use super::*;

    proptest::proptest! {
        /// Arbitrary input from a client is refused without a panic.
        #[test]
        fn refuses_any_string(
            header in "(\\{\"alg\":\"(ES|RS|HS|no)(256|384|512|ne)\"\\}|.{0,20})",
            claims in "(\\{\"(exp|nbf|aud)\":(\"[0-9]{0,30}\"|[0-9eE.+-]{0,10}|\\[\\])\\}|.{0,20})",
            signature in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..150),
            text in ".{0,100}",
        ) {
            let tokens = tokens();
            let parts = [header.as_bytes(), claims.as_bytes(), &signature];
            let token = parts.map(|part| BASE64_URL_SAFE_NO_PAD.encode(part)).join(".");
            for row in tokens["accepted"].as_array().unwrap() {
                let key = key(&tokens, &row["publicKey"]);
                proptest::prop_assert!(key.check(&token, now(&tokens)).is_err());
                proptest::prop_assert!(key.check(&text, now(&tokens)).is_err());
                // Claims are read without a signature, too.
                let _ = part::<Claims>(&BASE64_URL_SAFE_NO_PAD.encode(&claims))
                    .map(|claims| key.check_claims(&claims, now(&tokens)));
            }
        }
    }
}
