//! Kinds of events, by what they say about spans.

use clr_events::{EventName, Provider, kind_opcode};
use nettrace::Metadata;

use crate::span::SpanRole;
use crate::step::{is_scheduler_provider, is_surrounding};

pub(crate) const DIAGNOSTIC_SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";
const LOGGING: &str = "Microsoft-Extensions-Logging";
const START: u8 = 1;
const STOP: u8 = 2;

/// The part of an event in a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Start(Format),
    Stop(Format),
    /// Something failed, within the innermost span of its provider.
    Failure,
    /// A request's handler threw an exception, in whatever was open then.
    UnhandledException,
    /// A message of the logging library, as JSON.
    LogMessage,
    /// An event of a DiagnosticSource: its payload has its name.
    Diagnostic(Option<u8>),
    /// None; its activity is that of its thread.
    Other,
    /// None, and nothing can be known by it.
    Unrelated,
}

/// The fields of a provider's spans.
///
/// # Source
/// `HostingEventSource.cs` and `KestrelEventSource.cs` of dotnet/aspnetcore, `HttpTelemetry.cs`, `NameResolutionTelemetry.cs`,
/// `SocketsTelemetry.cs` and `NetSecurityTelemetry.cs` of dotnet/runtime, `SqlClientEventSource.cs` of dotnet/SqlClient,
/// `GrpcEventSource.cs` of grpc/grpc-dotnet.
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
    /// Texts of whatever name.
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
        let opcode = kind_opcode(metadata);
        match provider {
            DIAGNOSTIC_SOURCE if is_diagnostic(metadata.name()) => return Self::Diagnostic(opcode),
            LOGGING if metadata.name() == "MessageJson" => return Self::LogMessage,
            LOGGING => return Self::Other,
            "Microsoft.AspNetCore.Hosting" if id == 5 => return Self::UnhandledException,
            _ if is_surrounding(metadata) => return Self::Other,
            _ => {}
        }
        let format = || match provider {
            "Microsoft.AspNetCore.Hosting" if matches!(id, 3 | 4) => Some(Format::Hosting),
            "Microsoft-AspNetCore-Server-Kestrel" if matches!(id, 3 | 4) => Some(Format::Kestrel),
            "System.Net.Http" if matches!(id, 1 | 2) => Some(Format::Http),
            // Parts of a request, whose ids lie within its own.
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

/// Whether an event of the DiagnosticSource bridge is one that it passes on. Its numbers are not those that it declares.
fn is_diagnostic(name: &str) -> bool {
    let name = name.strip_suffix("Start").or_else(|| name.strip_suffix("Stop")).unwrap_or(name);
    matches!(name, "Event" | "Activity" | "Activity1" | "Activity2" | "RecursiveActivity1")
}

/// Whether the event of an activity says that it failed. .NET's own are called so: `RequestFailed`, `RequestFailedDetailed`,
/// `TlsHandshakeFailed`, `CallDeadlineExceeded`.
fn is_failure(name: &str) -> bool {
    name.ends_with("Failed") || name == "RequestFailedDetailed" || name == "CallDeadlineExceeded"
}

/// The name that a Start and its Stop have in common.
pub(crate) fn task(metadata: &Metadata) -> &str {
    match EventName::of_kind(metadata) {
        EventName::Phase { task, .. } => task,
        _ => "",
    }
}
