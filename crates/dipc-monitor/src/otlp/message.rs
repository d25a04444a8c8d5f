//! Messages of OTLP: attributes, and those of traces.
//!
//! The official ones of traces come with code that draws random numbers. Tests read these by them.

use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// `ExportTraceServiceRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TraceRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_spans: Vec<ResourceSpans>,
}

/// `ResourceSpans`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_spans: Vec<ScopeSpans>,
    #[prost(string, tag = "3")]
    pub(super) schema_url: String,
}

/// `ScopeSpans`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<Span>,
}

/// `Span`.
#[allow(clippy::struct_field_names, reason = "the names of the protocol")]
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(int32, tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<SpanEvent>,
    #[prost(message, repeated, tag = "13")]
    pub(super) links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub(super) flags: u32,
}

/// `Span.Event`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SpanEvent {
    #[prost(fixed64, tag = "1")]
    pub(super) time_unix_nano: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) attributes: Vec<KeyValue>,
}

/// `Span.Link`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Link {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(super) trace_state: String,
    #[prost(message, repeated, tag = "4")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(fixed32, tag = "6")]
    pub(super) flags: u32,
}

/// `Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(int32, tag = "3")]
    pub(super) code: i32,
}

/// `Status.StatusCode`.
pub(super) mod status_code {
    pub(in super::super) const OK: i32 = 1;
    pub(in super::super) const ERROR: i32 = 2;
}

/// `Span.SpanKind`.
pub(super) mod span_kind {
    pub(in super::super) const INTERNAL: i32 = 1;
    pub(in super::super) const SERVER: i32 = 2;
    pub(in super::super) const CLIENT: i32 = 3;
    pub(in super::super) const PRODUCER: i32 = 4;
    pub(in super::super) const CONSUMER: i32 = 5;
}

/// An attribute with a text.
pub(super) fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, any_value::Value::StringValue(value.into()))
}

/// An attribute with a number.
pub(super) fn number(key: &str, value: i64) -> KeyValue {
    attribute(key, any_value::Value::IntValue(value))
}

/// An attribute.
pub(super) fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    // One without a key would invalidate the whole request.
    let key = if key.is_empty() { "_" } else { key };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// The scope of a logger or an ActivitySource.
pub(super) fn scope(name: &str) -> InstrumentationScope {
    InstrumentationScope { name: name.to_owned(), ..InstrumentationScope::default() }
}
