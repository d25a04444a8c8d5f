//! Unattended monitoring of all .NET processes of a machine.
//!
//! # Modules
//!
//! - `filter`: the processes that a request or a rule is about.
//! - `process`, `monitor`: a process, and the table of all of them. `container`: its container and pod.
//!   `system_usage`: memory and processor time of both.
//!   `counters`: the shared session of its counters. `live_session`: a session whose events are evaluated as
//!   they come.
//! - `artifact`: what is collected of a process: traces, heaps, dumps, values of counters, log records, and
//!   reports of the exporter. `request_provider`: the provider of requests and spans, which every session of
//!   a process asks for alike. `filtered_sources`: filters that the end of a session takes away.
//!   `process_log`: messages about sessions. `stop`: requests to end. `operation`: the table of what is collected.
//! - `black_box`: the last seconds of each process, and bundles of crashes. `retention`: limits on files.
//! - `metrics`: the counters of all processes for Prometheus. `otlp`: metrics, log records and spans for a
//!   collector of OpenTelemetry. `access`: tokens. `server`: HTTP.
//! - `configuration`: dotnet-monitor's settings, checked and typed.
//! - `system_process`: the process of a runtime on this machine, and `container` where it is. `resource`: the
//!   attributes of a process as OpenTelemetry names them.
//! - `rules`: triggers over events, limits and states; actions as data. `rule_runner`: the rules of all
//!   processes, their sessions and their actions. `egress`: files of artifacts. `recordings`: the list of them.
//!   `directory_list`: files of the monitor's own in directories to which others may write.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod access;
mod artifact;
mod black_box;
pub mod configuration;
mod container;
mod counters;
mod directory_list;
mod egress;
mod filter;
mod filtered_sources;
mod live_session;
mod metrics;
mod monitor;
mod operation;
mod otlp;
mod process;
mod process_log;
mod recordings;
mod request_provider;
mod resource;
mod retention;
mod rule_runner;
pub mod rules;
mod server;
mod stop;
mod system_process;
mod system_usage;
mod trace_context;

#[cfg(feature = "jwt")]
pub use access::JwtError;
pub use access::{ApiKey, ApiKeyError, NoTokens, Scope, TokenError, Tokens};
pub use artifact::{
    Artifact, ArtifactError, ArtifactKind, ArtifactSink, ExceptionFilter, ExceptionsRequest,
    FlameGraphFormat, LiveMetricsRequest, LogFormat, LogLevel, LogsRequest, StackFormat, TopFormat,
    TopRequest, TraceProfile, TraceRequest,
};
pub use black_box::{
    BlackBoxConfig, BlackBoxEvent, BlackBoxLog, BlackBoxMessage, BlackBoxTotals, BlackBoxes,
};
pub use counters::{CounterConsumer, CounterRequest, CounterSubscription, SharedCounters};
pub use egress::{EgressError, EgressQueue, StoreClient};
pub use filter::{Filter, FilterKey, MatchType, ProcessFacts};
pub use metrics::{CounterSummary, Metrics, MetricsConfig};
pub use monitor::{Monitor, MonitorConfig, MonitorError, ProcessObserver, Unanswered};
pub use operation::{Operation, OperationState, Operations, RunningOperation, TooMany};
pub use otlp::{OtlpConfig, OtlpExport, OtlpSignal, OtlpSink, OtlpTotals, SamplingRatio, TracesConfig};
pub use process::Watched;
pub use process_log::{ProcessEvent, ProcessMessage, ProcessReport};
pub use request_provider::http_provider;
pub use resource::attributes as resource_attributes;
pub use retention::Retention;
pub use rule_runner::{RuleEvent, RuleLog, RuleMessage, RuleRecord, Rules, RulesConfig};
pub use server::{ListenAddress, ParseAddressError, Server, ServerConfig, ServerError, is_local_host};
#[cfg(feature = "tls")]
pub use server::{Tls, TlsError};
pub use stop::{StopSignal, WorkEnd};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
