//! JSON Web Tokens at the server. Each form of them is tested where they are checked.

use dipc_monitor::{ApiKey, Tokens};
use serde_json::Value;

use crate::{Fixture, http};

#[test]
fn only_a_token_of_the_api_key_opens_routes() {
    let data: Value = serde_json::from_slice(&testdata::bytes("monitor/tokens.json")).unwrap();
    let text = |name: &str| data[name].as_str().unwrap();
    let tokens = Tokens::default();
    tokens.set_api_key(Some(ApiKey::parse(text("subject"), text("publicKey"), None).unwrap()));
    let fixture = Fixture::with(tokens.clone(), None);
    let _runtime = fixture.add(dipc_sim::Runtime::builder());
    let status = |path: &str, token: &str| {
        let header = format!("Authorization: Bearer {token}\r\n");
        http::receive(http::send(fixture.address(), "GET", path, &header, "")).status
    };
    let token = text("forEver");
    assert_eq!((status("/processes", token), status("/env", token)), (200, 200));
    assert_eq!(fixture.get("/processes").status, 401);
    assert_eq!(status("/processes", text("expired")), 401);
    for (name, row) in data["refused"].as_object().unwrap() {
        assert_eq!(status("/processes", row["token"].as_str().unwrap()), 401, "{name}");
    }
    // A key that is removed does not open the server.
    tokens.set_api_key(None);
    assert_eq!((status("/processes", token), fixture.get("/processes").status), (401, 401));
}
