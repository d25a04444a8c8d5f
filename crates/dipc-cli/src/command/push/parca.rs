//! The request that sends profiles to Parca over HTTP.
//!
//! # Source
//! `parca/profilestore/v1alpha1/profilestore.proto` of parca-dev/parca: `WriteRaw`, as its gateway maps it to
//! JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

pub(super) const PATH: &str = "/profiles/writeraw";
pub(super) const CONTENT_TYPE: &str = "application/json";

/// Returns the request for a gzipped pprof profile.
pub(super) fn request(labels: &[(String, String)], pprof: &[u8]) -> Vec<u8> {
    let labels: Vec<_> = labels.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let samples = json!([{ "rawProfile": STANDARD.encode(pprof) }]);
    let series = json!([{ "labels": { "labels": labels }, "samples": samples }]);
    json!({ "series": series, "normalized": false }).to_string().into_bytes()
}
