//! Kinds of events by role in spans.

use clr_events::{EventName, Provider, kind_opcode};
use nettrace::Metadata;

use crate::span::SpanRole;
use crate::step::{LOGGING_PROVIDER, is_scheduler_provider, is_surrounding};

pub(crate) const DIAGNOSTIC_SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";
const START: u8 = 1;
const STOP: u8 = 2;

/// The role of an event in a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Start(Format),
    Stop(Format),
    /// A failure within the innermost span of its provider.
    Failure,
    /// An exception thrown by a request's handler, in the span that was open at that time.
    UnhandledException,
    /// A message of the logging library, as JSON.
    LogMessage,
    /// An event of a DiagnosticSource: its name is in its payload.
    Diagnostic(Option<u8>),
    /// No role; the event's activity is its thread's activity.
    Other,
    /// No role, and no information about its thread.
    Unrelated,
}

/// The fields of a provider's spans.
///
/// # Source
/// `HostingEventSource.cs` and `KestrelEventSource.cs` of dotnet/aspnetcore, `HttpTelemetry.cs`,
/// `NameResolutionTelemetry.cs`, `SocketsTelemetry.cs` and `NetSecurityTelemetry.cs` of dotnet/runtime,
/// `SqlClientEventSource.cs` of dotnet/SqlClient, `GrpcEventSource.cs` of grpc/grpc-dotnet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `method`, `path`.
    Hosting,
    /// The same, and `requestId`.
    Kestrel,
    /// `scheme`, `host`, `port`, `pathAndQuery`; at the end `statusCode`.
    Http,
    /// `hostNameOrAddress`.
    Resolution,
    /// `address`.
    Connect,
    /// `isServer`, `targetHost`; at the end `protocol`, 0 for none.
    Handshake,
    /// `objectId`, `dataSource`, `database`; at the end `compositeState`, `sqlExceptionNumber`.
    Sql,
    /// `method`.
    Grpc(SpanRole),
    /// Texts with arbitrary names.
    Generic,
}

impl Format {
    pub(crate) const fn role(self) -> SpanRole {
        match self {
            Self::Hosting | Self::Kestrel => SpanRole::Server,
            Self::Http | Self::Resolution | Self::Connect | Self::Handshake | Self::Sql => SpanRole::Outgoing,
            Self::Grpc(role) => role,
            Self::Generic => SpanRole::Other,
        }
    }
}

impl EventKind {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        if let Some(provider) = Provider::of(metadata) {
            return if provider == Provider::Runtime { Self::Other } else { Self::Unrelated };
        }
        let (provider, id) = (metadata.provider(), metadata.event_id());
        if is_scheduler_provider(provider) {
            return Self::Other;
        }
        // The kernel samples a thread whatever it works for, and does not know its activity.
        if matches!(provider, "Universal.Events" | "Universal.System") {
            return Self::Unrelated;
        }
        let opcode = kind_opcode(metadata);
        match provider {
            DIAGNOSTIC_SOURCE if is_diagnostic(metadata.name()) => return Self::Diagnostic(opcode),
            LOGGING_PROVIDER if metadata.name() == "MessageJson" => return Self::LogMessage,
            LOGGING_PROVIDER => return Self::Other,
            "Microsoft.AspNetCore.Hosting" if id == 5 => return Self::UnhandledException,
            _ if is_surrounding(metadata) => return Self::Other,
            _ => {}
        }
        let format = || match provider {
            "Microsoft.AspNetCore.Hosting" if matches!(id, 3 | 4) => Some(Format::Hosting),
            "Microsoft-AspNetCore-Server-Kestrel" if matches!(id, 3 | 4) => Some(Format::Kestrel),
            "System.Net.Http" if matches!(id, 1 | 2) => Some(Format::Http),
            // Parts of a request, with ids nested in the request's id.
            "System.Net.Http" if matches!(id, 7..=14) => None,
            "System.Net.NameResolution" => Some(Format::Resolution),
            "System.Net.Sockets" if matches!(id, 1 | 2) => Some(Format::Connect),
            "System.Net.Security" => Some(Format::Handshake),
            "Microsoft.Data.SqlClient.EventSource" if matches!(id, 1 | 2) => Some(Format::Sql),
            "Grpc.AspNetCore.Server" => Some(Format::Grpc(SpanRole::Server)),
            "Grpc.Net.Client" => Some(Format::Grpc(SpanRole::Outgoing)),
            _ => Some(Format::Generic),
        };
        match opcode {
            Some(START) => format().map_or(Self::Other, Self::Start),
            Some(STOP) => format().map_or(Self::Other, Self::Stop),
            _ if is_failure(metadata.name()) => Self::Failure,
            _ => Self::Other,
        }
    }
}

/// Returns true if an event of the DiagnosticSource bridge carries another source's event. Event ids do not
/// match the declared ones.
fn is_diagnostic(name: &str) -> bool {
    let name = name.strip_suffix("Start").or_else(|| name.strip_suffix("Stop")).unwrap_or(name);
    matches!(name, "Event" | "Activity" | "Activity1" | "Activity2" | "RecursiveActivity1")
}

/// Returns true if the name of an activity's event indicates a failure, as .NET's own do: `RequestFailed`,
/// `RequestFailedDetailed`, `TlsHandshakeFailed`, `CallDeadlineExceeded`.
fn is_failure(name: &str) -> bool {
    name.ends_with("Failed") || name == "RequestFailedDetailed" || name == "CallDeadlineExceeded"
}

/// The common name of a Start and its Stop.
pub(crate) fn task(metadata: &Metadata) -> &str {
    match EventName::of_kind(metadata) {
        EventName::Phase { task, .. } => task,
        _ => "",
    }
}
