//! The request that sends profiles to Pyroscope.
//!
//! # Source
//! `push/v1/push.proto` and `types/v1/types.proto` of grafana/pyroscope. Requests of the Connect protocol are
//! plain POSTs.

use prost::Message;

/// The path of `push.v1.PusherService.Push`.
pub(super) const PATH: &str = "/push.v1.PusherService/Push";
pub(super) const CONTENT_TYPE: &str = "application/proto";

#[derive(Clone, PartialEq, Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RawSample>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
    #[prost(string, tag = "2")]
    id: String,
}

/// Returns the request for a gzipped pprof profile.
pub(super) fn request(labels: &[(String, String)], pprof: Vec<u8>, id: String) -> Vec<u8> {
    let labels =
        labels.iter().map(|(name, value)| LabelPair { name: name.clone(), value: value.clone() }).collect();
    let samples = vec![RawSample { raw_profile: pprof, id }];
    PushRequest { series: vec![Series { labels, samples }] }.encode_to_vec()
}
