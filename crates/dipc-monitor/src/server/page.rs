//! The page of the monitor: one document, which does not hold data and only loads answers of the routes.
//!
//! The policy allows the scripts and styles of the page and of recordings' pages, by hash: a flame graph that
//! the page opens inherits the policy.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use nettrace_export::page;
use sha2::{Digest as _, Sha256};

use super::body::AnswerBody;

const HEAD: &str = include_str!("page/head.html");
const BODY: &str = include_str!("page/body.html");
const STYLE: &str = include_str!("page/page.css");
/// Classic scripts, in this order: each may use the declarations of earlier ones.
const SCRIPTS: [&str; 4] = [
    include_str!("page/client.js"),
    include_str!("page/tables.js"),
    include_str!("page/jobs.js"),
    include_str!("page/main.js"),
];

/// The page as it is sent.
pub(super) struct Page {
    document: Bytes,
    policy: HeaderValue,
}

impl Page {
    pub(super) fn new() -> Self {
        let style = format!("\n{}{STYLE}", page::STYLE);
        let script = format!("\n\"use strict\";\n{}{}", page::SHARED_SCRIPTS.concat(), SCRIPTS.concat());
        let document =
            format!("{HEAD}<style>{style}</style>\n{BODY}<script>{script}</script>\n</body>\n</html>\n");
        let hashes = |own: String, of_pages: [String; 2]| {
            let hashes = [own].into_iter().chain(of_pages).map(|text| hash(&text));
            hashes.collect::<Vec<_>>().join(" ")
        };
        let policy = format!(
            "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            hashes(script, page::inline_scripts()),
            hashes(style, page::inline_styles()),
        );
        // The policy is ASCII.
        let policy =
            HeaderValue::try_from(policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"));
        Self { document: document.into(), policy }
    }

    pub(super) fn response(&self) -> Response<AnswerBody> {
        let mut response = Response::new(AnswerBody::whole(self.document.clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        // Another version may be here tomorrow.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

/// The source of a policy for an inline script or style.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}
