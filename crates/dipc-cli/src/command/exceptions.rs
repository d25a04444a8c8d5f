//! `dipc exceptions`: the last exceptions of a process, which a monitor has kept.

use std::fmt;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use dipc_http::{Endpoint, RequestError};
use hyper::header::{ACCEPT, HeaderName, HeaderValue};

use crate::args::format::Format;
use crate::exit::{Exit, Failure, Outcome};
use crate::http::{parse_endpoint, parse_header};
use crate::render::escape::escape_controls;
use crate::render::{messages, output};

/// The address of a monitor by default.
const MONITOR: &str = "http://127.0.0.1:52323";
/// Maximum size of the answer of a monitor, in bytes: its black boxes have 32 MB of a process.
const MAX_BYTES: usize = 64 << 20;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("process").required(true))]
pub(crate) struct ExceptionsArgs {
    /// Process id
    #[arg(short = 'p', long = "process-id", value_name = "PID", group = "process")]
    pid: Option<u32>,
    /// Name of the process
    #[arg(short, long, value_name = "NAME", group = "process")]
    name: Option<String>,
    /// Address of the monitor: http://HOST:PORT, unix:PATH [default: http://127.0.0.1:52323]
    ///
    /// A running 'dipc monitor' keeps the last events of each process (--keep). Nothing is asked of the
    /// process now. A monitor with https is asked by curl: dipc has no TLS.
    #[arg(long, value_name = "URL", value_parser = parse_monitor)]
    monitor: Option<MonitorAddress>,
    /// A header of the request, such as 'Authorization=Bearer TOKEN'; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The address of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MonitorAddress {
    /// Its URL without a slash at the end.
    Url(String),
    /// The path of its Unix socket.
    Socket(PathBuf),
}

impl MonitorAddress {
    /// The monitor's answer to a path with a query.
    fn endpoint(&self, path: &str) -> Result<Endpoint, String> {
        match self {
            Self::Url(url) => parse_endpoint(&format!("{url}{path}"), "/"),
            #[cfg(unix)]
            Self::Socket(socket) => Endpoint::of_socket(socket, path).map_err(|error| error.to_string()),
            #[cfg(not(unix))]
            Self::Socket(_) => Err("this system has no Unix sockets for it: http://HOST:PORT".to_owned()),
        }
    }
}

impl fmt::Display for MonitorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Socket(socket) => write!(f, "unix:{}", socket.display()),
        }
    }
}

fn parse_monitor(text: &str) -> Result<MonitorAddress, String> {
    if let Some(socket) = text.strip_prefix("unix:").filter(|socket| !socket.is_empty()) {
        return Ok(MonitorAddress::Socket(socket.into()));
    }
    if text.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")) {
        let url = text.trim_end_matches('/');
        return Err(format!(
            "dipc has no TLS; curl does: curl -H 'Authorization: Bearer TOKEN' '{url}/exceptions?pid=PID'; on the \
             monitor's machine, --monitor unix:PATH or http://127.0.0.1:PORT"
        ));
    }
    parse_endpoint(text, "/").map(|_| MonitorAddress::Url(text.trim_end_matches('/').to_owned()))
}

pub(crate) fn run(args: &ExceptionsArgs) -> Outcome {
    let monitor = args.monitor.clone().unwrap_or_else(|| MonitorAddress::Url(MONITOR.to_owned()));
    let process = args.pid.map(|pid| format!("pid={pid}"));
    let process = process.or_else(|| {
        let name = args.name.as_deref()?;
        Some(format!("name={}", form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>()))
    });
    let path = format!("/exceptions?{}", process.unwrap_or_default());
    let endpoint = monitor.endpoint(&path).map_err(Failure::usage)?;
    let accepted = match args.format {
        Format::Json => "application/x-ndjson",
        Format::Table => "text/plain",
    };
    let mut headers = vec![(ACCEPT, HeaderValue::from_static(accepted))];
    headers.extend(args.header.iter().cloned());
    let answer = fetch(&endpoint, &headers).map_err(|error| refusal(&error, &monitor))?;
    let answer = String::from_utf8_lossy(&answer);
    match args.format {
        Format::Json => {
            let lines = answer.lines().map(serde_json::from_str::<serde_json::Value>);
            let exceptions = lines.collect::<Result<Vec<_>, _>>().map_err(|error| {
                Failure::new(Exit::Failed, format_args!("exceptions: the answer of {monitor}: {error}"))
            })?;
            output::print_json(&exceptions)?;
        }
        Format::Table if answer.trim().is_empty() => {
            messages::note("No exception was thrown in the time that the monitor keeps.");
        }
        Format::Table => {
            let lines = answer.lines().map(|line| escape_controls(line).into_owned() + "\n");
            output::print(lines.collect::<String>())?;
        }
    }
    Ok(Exit::Done)
}

fn fetch(endpoint: &Endpoint, headers: &[(HeaderName, HeaderValue)]) -> Result<Vec<u8>, RequestError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| RequestError::Temporary { reason: error.to_string(), wait: None })?;
    runtime.block_on(endpoint.fetch(headers, MAX_BYTES)).map(|answer| answer.to_vec())
}

fn refusal(error: &RequestError, monitor: &MonitorAddress) -> Failure {
    let reason = error.to_string();
    let monitor = monitor.to_string();
    let monitor = escape_controls(&monitor);
    let what = format!("exceptions: the monitor at {monitor}: {}", escape_controls(&reason));
    match error {
        RequestError::Refused { .. } if reason.contains("HTTP 401") => Failure::new(Exit::Refused, what)
            .with_help("--header 'Authorization=Bearer TOKEN' sends one of its tokens"),
        RequestError::Refused { .. } => Failure::new(Exit::Failed, what),
        _ => Failure::new(Exit::NotReachable, what).with_help(
            "'dipc monitor' keeps the last exceptions of every process; 'dipc events -p PID' shows those to come",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_monitor_is_at_a_url_or_a_socket_and_https_has_a_remedy() {
        let url = MonitorAddress::Url("http://host:1".to_owned());
        assert_eq!(parse_monitor("http://host:1/"), Ok(url));
        assert_eq!(parse_monitor("unix:/run/m"), Ok(MonitorAddress::Socket("/run/m".into())));
        let error = parse_monitor("HTTPS://host:1/").unwrap_err();
        assert!(error.contains("curl") && error.contains("host:1/exceptions?pid=PID"), "{error}");
        for text in ["unix:", "host", "grpc://host"] {
            assert!(parse_monitor(text).is_err(), "{text}");
        }
    }

    #[test]
    fn refusals_have_the_way_that_helps() {
        let help = |error: &RequestError| {
            refusal(error, &MonitorAddress::Url(MONITOR.to_owned())).help.unwrap_or_default()
        };
        let refused = |reason: &str| RequestError::Refused { reason: reason.to_owned() };
        assert!(help(&refused("HTTP 401 Unauthorized")).contains("Bearer TOKEN"));
        assert_eq!(help(&refused("HTTP 400 Bad Request: no such process")), "");
        let away = RequestError::Temporary { reason: "Connection refused".to_owned(), wait: None };
        assert!(help(&away).contains("'dipc monitor' keeps"));
    }
}
