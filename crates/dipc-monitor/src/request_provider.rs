//! The provider of requests and spans.

use clr_activity::RequestWitness;
use dipc_client::{Keywords, Level, ProviderConfig};

/// The provider that passes on the events of other libraries.
pub(crate) const DIAGNOSTIC_SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";

/// The provider of requests: served by ASP.NET Core as `Activity1`, and sent by HttpClient as `Activity2`.
/// The argument of the last session is in force for all sessions of a process, so that every session of a
/// monitor has to send this one.
pub fn http_provider() -> ProviderConfig {
    const ACTIVITY: &str = "ActivityId=*Activity.Id;ActivitySpanId=*Activity.SpanId;ActivityTraceId=*Activity.TraceId;ActivityParentId=*Activity.ParentId;ActivityIdFormat=*Activity.IdFormat";
    const SERVED: &str = "Microsoft.AspNetCore/Microsoft.AspNetCore.Hosting.HttpRequestIn";
    const SENT: &str = "HttpHandlerDiagnosticListener/System.Net.Http.HttpRequestOut";
    let start = "ActivityStartTime=*Activity.StartTimeUtc.Ticks";
    let stop = "ActivityDuration=*Activity.Duration.Ticks;ActivityId=*Activity.Id";
    // The runtime parses it as lines.
    let lines = [
        format!(
            "{SERVED}.Start@Activity1Start:-Request.Scheme;Request.Host;Request.PathBase;Request.Path;Request.QueryString;Request.Method;{start};{ACTIVITY}"
        ),
        format!("{SERVED}.Stop@Activity1Stop:-Response.StatusCode;{stop}"),
        format!("{SENT}.Start@Activity2Start:-Request.RequestUri;Request.Method;{start};{ACTIVITY}"),
        format!("{SENT}.Stop@Activity2Stop:-Response.StatusCode;{stop}"),
    ];
    ProviderConfig {
        arguments: format!("FilterAndPayloadSpecs=\"{}\"", lines.join("\r\n")),
        keywords: Keywords(3),
        level: Level::VERBOSE,
        name: DIAGNOSTIC_SOURCE.to_owned(),
    }
}

/// The provider that shows requests independently of [`http_provider`].
pub(crate) fn witness_provider() -> ProviderConfig {
    ProviderConfig {
        keywords: Keywords(u64::MAX),
        level: Level::INFORMATIONAL,
        name: RequestWitness::HOSTING.to_owned(),
        arguments: String::new(),
    }
}

/// The lines for ActivitySources in the argument of the provider of requests. They do not set the flag by
/// which the application tells others that a trace is recorded.
pub(crate) fn source_lines(sources: &[String]) -> String {
    const PROPERTIES: &str = "Id;ParentId;DisplayName;Kind;Status;StatusDescription;Start=StartTimeUtc.Ticks;Took=Duration.Ticks;Links;Events;Tags=TagObjects.*Enumerate";
    // The base names make .NET Core 3.1 create the activities, although it does not have ActivitySources.
    let mut lines = [
        "Microsoft.AspNetCore/Microsoft.AspNetCore.Hosting.HttpRequestIn@Event:-".to_owned(),
        "HttpHandlerDiagnosticListener/System.Net.Http.HttpRequestOut@Event:-".to_owned(),
    ]
    .to_vec();
    let has_all = sources.iter().any(|source| source == "*");
    let own = ["Microsoft.AspNetCore", "System.Net.Http"].map(ToOwned::to_owned);
    let chosen = own.iter().chain(sources).filter(|_| !has_all);
    let mut names: Vec<&str> = chosen.map(String::as_str).collect();
    if has_all {
        names.push("*");
    }
    lines.extend(names.iter().map(|name| format!("[AS]{name}/-Record:-{PROPERTIES}")));
    lines.join("\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sources_include_named_sources() {
        let lines = |sources: &[&str]| {
            let sources: Vec<String> = sources.iter().map(|source| (*source).to_owned()).collect();
            let lines = source_lines(&sources);
            let lines = lines.lines().filter_map(|line| line.strip_prefix("[AS]")?.split('/').next());
            lines.map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&["*", "Shop"]), ["*"]);
        assert_eq!(lines(&["Shop"]), ["Microsoft.AspNetCore", "System.Net.Http", "Shop"]);
    }
}
