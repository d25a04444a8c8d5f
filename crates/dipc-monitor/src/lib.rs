//! Unattended monitoring of all .NET processes of a machine.
//!
//! **Use it** to build a monitor of all .NET processes of a machine into a program: routes of
//! dotnet-monitor, rules, egress. **Not for** one process at a time: `dipc-client` attaches to it. The
//! program `dipc` has this crate as its command `monitor`, with HTTP clients.
//!
//! ```no_run
//! use dipc_monitor::{Monitor, MonitorConfig};
//!
//! # fn main() -> Result<(), dipc_monitor::MonitorError> {
//! // Processes start and end; sessions and requests that begin later are for the processes in the table.
//! let monitor = Monitor::start(MonitorConfig::default(), Vec::new())?;
//! std::thread::sleep(std::time::Duration::from_secs(10));
//! for process in monitor.processes() {
//!     println!("{} {}", process.facts.pid, process.facts.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Then [`Server`] answers dotnet-monitor's routes for the table, [`Rules`] runs collection rules over it,
//! and [`EgressQueue`] brings their artifacts to their places.
//!
//! Features: `jwt` (API keys of dotnet-monitor), `stores` (object stores in configurations), `tls`. Rust
//! 1.89 or later.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod access;
mod artifact;
mod black_box;
pub mod configuration;
mod continuous_profile;
mod counters;
mod egress;
mod filter;
mod filtered_sources;
mod live_session;
mod metrics;
mod monitor;
mod operation;
mod otlp;
mod owner_memory;
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

#[cfg(feature = "jwt")]
pub use access::JwtError;
pub use access::{ApiKey, ApiKeyError, NoTokens, Scope, TokenError, Tokens};
pub use artifact::{
    Artifact, ArtifactError, ArtifactKind, ArtifactSink, ExceptionFilter, ExceptionsRequest,
    FlameGraphFormat, LiveMetricsRequest, LogFormat, LogsRequest, ProfileKind, RequestsRequest, StackFormat,
    TopFormat, TopRequest, TraceProfile, TraceRequest,
};
pub use black_box::{
    BlackBoxConfig, BlackBoxEvent, BlackBoxLog, BlackBoxMessage, BlackBoxTotals, BlackBoxes,
};
pub use continuous_profile::{
    ContinuousProfile, ContinuousProfileConfig, ProfileExportConfig, ProfileLog, ProfileMessage,
    ProfileRingConfig,
};
pub use counters::{CounterConsumer, CounterRequest, CounterSubscription, SharedCounters};
pub use dipc_collect::logs::{LogLevel, LogSelection};
pub use dipc_collect::{Retention, StopSignal};
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
pub use rule_runner::{RuleEvent, RuleLog, RuleMessage, RuleRecord, Rules, RulesConfig};
pub use server::{ListenAddress, ParseAddressError, Server, ServerConfig, ServerError};
#[cfg(feature = "tls")]
pub use server::{Tls, TlsError};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
