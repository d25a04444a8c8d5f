//! Messages of the OpenTelemetry protocol (OTLP) as [`prost`] types.
//!
//! **Use it** to write requests for collectors without an SDK and its dependencies. **Not for** reading
//! requests of others: only the fields that exporters of dipc write are here, and unknown ones are skipped.
//!
//! Features: none. Rust 1.89 or later.
//!
//! Types and fields have the names of the protocol, and its documentation applies.
//!
//! ```
//! use otlp_messages::Message as _;
//! use otlp_messages::common::{KeyValue, Resource};
//! use otlp_messages::logs::{ExportLogsServiceRequest, LogRecord, ResourceLogs, ScopeLogs};
//!
//! let record = LogRecord { body: Some("ready".into()), ..LogRecord::default() };
//! let request = ExportLogsServiceRequest {
//!     resource_logs: vec![ResourceLogs {
//!         resource: Some(Resource { attributes: vec![KeyValue::new("service.name", "shop")] }),
//!         scope_logs: vec![ScopeLogs { scope: None, log_records: vec![record] }],
//!     }],
//! };
//! // The body of a POST to /v1/logs.
//! let body = request.encode_to_vec();
//! assert_eq!(body.len(), 41);
//! ```
//!
//! # Source
//! `opentelemetry/proto` 1.10: `common/v1`, `resource/v1`, `metrics/v1`, `logs/v1`, `trace/v1`,
//! `profiles/v1development`, and the requests of `collector`.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap
    )
)]
#![allow(missing_docs, reason = "the protocol's documentation has each field")]
#![allow(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "messages are written field by field"
)]
#![allow(clippy::struct_field_names, clippy::enum_variant_names, reason = "the protocol's names")]

pub mod common;
pub mod logs;
pub mod metrics;
pub mod profiles;
pub mod trace;

pub use prost::Message;

#[cfg(test)]
mod tests;
