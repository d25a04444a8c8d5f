//! Answers in JSON, with the members of dotnet-monitor's.

use std::time::{Duration, SystemTime};

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use jiff::Timestamp;
use serde::Serialize;

use super::body::AnswerBody;
use crate::configuration::format_time_span;
use crate::operation::Operation;
use crate::process::Watched;
use crate::rules::RuleStatus;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessIdentifier<'p> {
    pid: u32,
    uid: String,
    name: &'p str,
    is_default: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessDetails<'p> {
    pid: u32,
    uid: String,
    name: &'p str,
    command_line: Option<&'p str>,
    operating_system: &'p str,
    process_architecture: &'p str,
    managed_entry_point_assembly_name: Option<&'p str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Info<'i> {
    pub(super) version: &'i str,
    pub(super) runtime_version: &'static str,
    pub(super) diagnostic_port_mode: &'static str,
    pub(super) diagnostic_port_name: Option<String>,
    pub(super) capabilities: Vec<Capability>,
}

#[derive(Serialize)]
pub(super) struct Capability {
    pub(super) name: &'static str,
    pub(super) enabled: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OperationSummary<'o> {
    operation_id: String,
    created_date_time: String,
    status: &'static str,
    process: OperationProcess<'o>,
    egress_provider_name: Option<&'o str>,
    is_stoppable: bool,
    tags: Vec<&'o str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OperationStatus<'o> {
    resource_location: Option<&'o str>,
    error: Option<OperationError<'o>>,
    #[serde(flatten)]
    summary: OperationSummary<'o>,
}

#[derive(Serialize)]
struct OperationProcess<'o> {
    pid: u32,
    uid: String,
    name: &'o str,
}

#[derive(Serialize)]
struct OperationError<'o> {
    code: &'static str,
    message: &'o str,
}

impl<'p> ProcessIdentifier<'p> {
    pub(super) fn of(process: &'p Watched, is_default: bool) -> Self {
        Self { pid: process.facts.pid, uid: process.uid.to_string(), name: process.title(), is_default }
    }
}

impl<'p> ProcessDetails<'p> {
    pub(super) fn of(process: &'p Watched) -> Self {
        Self {
            pid: process.facts.pid,
            uid: process.uid.to_string(),
            name: process.title(),
            command_line: process.facts.command_line.as_deref(),
            operating_system: &process.operating_system,
            process_architecture: &process.architecture,
            managed_entry_point_assembly_name: process.facts.entry_assembly.as_deref(),
        }
    }
}

impl<'o> OperationSummary<'o> {
    pub(super) fn of(operation: &'o Operation) -> Self {
        Self {
            operation_id: operation.id.to_string(),
            created_date_time: time(operation.created),
            status: operation.state.name(),
            process: OperationProcess {
                pid: operation.pid,
                uid: operation.uid.to_string(),
                name: &operation.process_name,
            },
            egress_provider_name: operation.egress_provider.as_deref(),
            is_stoppable: operation.is_stoppable(),
            tags: operation.tags.iter().map(String::as_str).collect(),
        }
    }
}

impl<'o> OperationStatus<'o> {
    pub(super) fn of(operation: &'o Operation) -> Self {
        let error = operation.error.as_deref();
        Self {
            resource_location: operation.resource_location.as_deref(),
            error: error.map(|message| OperationError { code: "Failed", message }),
            summary: OperationSummary::of(operation),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleDescription {
    state: &'static str,
    state_reason: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleDetails {
    lifetime_occurrences: i32,
    sliding_window_occurrences: i32,
    action_count_limit: i32,
    action_count_sliding_window_duration_limit: Option<String>,
    sliding_window_duration_countdown: Option<String>,
    rule_finished_countdown: Option<String>,
    #[serde(flatten)]
    description: RuleDescription,
}

impl RuleDescription {
    pub(super) fn of(status: &RuleStatus) -> Self {
        let mut state_reason = status.state.reason();
        if let Some(events) = &status.events {
            state_reason.push(' ');
            state_reason.push_str(events);
        }
        Self { state: status.state.name(), state_reason }
    }
}

impl RuleDetails {
    pub(super) fn of(status: &RuleStatus) -> Self {
        // The contract has 32 bits.
        let count = |count: u64| i32::try_from(count).unwrap_or(i32::MAX);
        let whole_seconds = |duration: Duration| format_time_span(Duration::from_secs(duration.as_secs()));
        Self {
            lifetime_occurrences: count(status.lifetime_occurrences),
            sliding_window_occurrences: count(status.sliding_window_occurrences),
            action_count_limit: count(status.limits.action_count.into()),
            action_count_sliding_window_duration_limit: status
                .limits
                .action_count_window
                .map(format_time_span),
            sliding_window_duration_countdown: status.window_countdown.map(whole_seconds),
            rule_finished_countdown: status.finished_countdown.map(whole_seconds),
            description: RuleDescription::of(status),
        }
    }
}

/// Formats a time as dotnet-monitor does.
pub(super) fn time(time: SystemTime) -> String {
    Timestamp::try_from(time).unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Returns an answer in JSON.
pub(super) fn response(status: StatusCode, value: &impl Serialize) -> Response<AnswerBody> {
    // Maps in the structures above have string keys only.
    let json = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(AnswerBody::whole(json));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    response
}
