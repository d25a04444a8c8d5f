//! The samples of the machine in a time range.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dipc_collect::StopSignal;
use dipc_collect::profile_ring::{RangeError, RangeRecording, RangeRequest, Segment};
use hyper::{Response, StatusCode};
use jiff::Timestamp;

use super::body::{AnswerBody, CancelOnDrop};
use super::problem::Problem;
use super::recordings::{failed, send, set_headers};
use super::service::Service;
use crate::artifact::{ProfileFormat, ProfileKind, ProfileReportRequest, Query, report_of_recording};

/// Maximum size of the recordings of a range, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum time for an answer.
const MAX_TIME: Duration = Duration::from_secs(120);
/// The time before the end of a range that it has without a start.
const DEFAULT_SPAN_MS: u64 = 60_000;

/// A request for the samples of a time.
#[derive(Debug)]
struct ProfileRequest {
    range: RangeRequest,
    report: ProfileReportRequest,
}

impl ProfileRequest {
    fn parse(query: &Query, now_ms: u64) -> Result<Self, Problem> {
        let to_ms = query.time("to", now_ms)?.unwrap_or(now_ms);
        let from_ms = query.time("from", now_ms)?.unwrap_or_else(|| to_ms.saturating_sub(DEFAULT_SPAN_MS));
        if from_ms >= to_ms {
            return Err(Problem::invalid("from", "it is not before the end of the range"));
        }
        require_samples(query)?;
        let format = query.choice("format", ProfileFormat::parse)?.unwrap_or_default();
        let process = query.process()?.pid;
        let of = process.map_or_else(|| "all processes".to_owned(), |pid| format!("process {pid}"));
        let report = ProfileReportRequest {
            format,
            title: format!("{of}, {} to {}", time(from_ms), time(to_ms)),
            number: query.number()?,
            is_inclusive: query.flag("inclusive")?,
            has_processes: process.is_none(),
        };
        let processes = process.map(u64::from).into_iter().collect();
        Ok(Self { range: RangeRequest { from_ms, to_ms, processes, max_bytes: MAX_BYTES }, report })
    }
}

impl Service {
    /// Answers with the recording of a time range, or a report of it.
    pub(super) async fn profile(&self, query: &Query) -> Result<Response<AnswerBody>, Problem> {
        let ring =
            self.profiles.as_ref().and_then(|profile| Some((Arc::clone(profile), profile.directory()?)));
        let Some((profile, directory)) = ring else {
            let detail = "samples of the machine are not kept: start the monitor with --profile-keep 24h";
            return Err(Problem::new(StatusCode::NOT_FOUND, "Not Found", detail));
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let ProfileRequest { range, report } = ProfileRequest::parse(query, now_ms)?;
        let Ok(permit) = Arc::clone(&self.pages).try_acquire_owned() else {
            let detail = "the samples of another time are being read";
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "Too Many Requests", detail));
        };
        let format = report.format;
        let name = format!("profile-{}.{}", file_time(range.from_ms), format.extension());
        // A client that leaves ends it.
        let stop = StopSignal::new();
        let _cancelled = CancelOnDrop(stop.clone());
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let RangeRecording { file, bytes, .. } =
                profile.read(&directory, &range, &stop).map_err(|error| refusal(&error))?;
            if format == ProfileFormat::Nettrace {
                return Ok(Answer::File(file, bytes));
            }
            report_of_recording(file, &report).map(Answer::Report).map_err(|error| failed(&error))
        });
        let answer = tokio::time::timeout(MAX_TIME, work).await.map_err(|_| {
            let detail = "the samples of this time take too long: ask for less of it, or of one process";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable", detail)
        })?;
        let mut response = match answer.map_err(|error| failed(&error))?? {
            Answer::File(file, bytes) => send(&self.runtime, file, bytes),
            Answer::Report(bytes) => Response::new(AnswerBody::whole(bytes)),
        };
        set_headers(&mut response, format.media_type(), &name);
        Ok(response)
    }
}

/// Refuses what the samples of processors do not have, with the request that has it.
fn require_samples(query: &Query) -> Result<(), Problem> {
    if query.time_span("slower_than")?.is_some() {
        let what = "the samples that are kept are not of requests: /requests?pid=PID&slower_than=500ms has the \
                    methods of slow requests while it runs, and dipc report FILE requests --slower-than those of \
                    a recording by dipc trace --profile all";
        return Err(Problem::invalid("slower_than", what));
    }
    match query.get("kind").filter(|kind| !kind.is_empty() && !kind.eq_ignore_ascii_case("cpu")) {
        None => Ok(()),
        Some(kind) if ProfileKind::parse(kind).is_some() => {
            let what = format!(
                "only samples of processors are kept, which is kind=cpu: /top?pid=PID&kind={kind}&durationSeconds=30 \
                 has this kind while it runs"
            );
            Err(Problem::invalid("kind", what))
        }
        Some(_) => Err(Problem::invalid("kind", "only samples of processors are kept: kind=cpu")),
    }
}

enum Answer {
    File(File, u64),
    Report(Vec<u8>),
}

fn refusal(error: &RangeError) -> Problem {
    let text = error.to_string();
    match error {
        RangeError::Empty { kept } => {
            let kept = kept.map_or_else(
                || "nothing was kept so far".to_owned(),
                |Segment { start_ms, end_ms }| {
                    format!("samples are kept from {} to {}", time(start_ms), time(end_ms))
                },
            );
            Problem::new(StatusCode::NOT_FOUND, "Not Found", format!("{text}: {kept}"))
        }
        RangeError::TooLarge { .. } => Problem::invalid("from", format!("{text}: ask for a shorter time")),
        _ => failed(&text),
    }
}

fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn file_time(ms: u64) -> String {
    time(ms).replace([':', '-'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_251_764_250;

    fn parse(query: &str) -> Result<(u64, u64, Vec<u64>), Problem> {
        let request = ProfileRequest::parse(&Query::parse(Some(query)), NOW)?;
        Ok((request.range.from_ms, request.range.to_ms, request.range.processes))
    }

    #[test]
    fn ranges_are_calendar_times_or_times_ago() {
        assert_eq!(parse(""), Ok((NOW - 60_000, NOW, vec![])));
        assert_eq!(parse("from=600&pid=7"), Ok((NOW - 600_000, NOW, vec![7])));
        assert_eq!(parse("from=1.5&to=0.25"), Ok((NOW - 1500, NOW - 250, vec![])));
        let calendar = parse("from=2026-11-21T09:02:00Z&to=2026-11-21T10:02:30.5%2B01:00");
        assert_eq!(calendar, Ok((1_795_251_720_000, 1_795_251_750_500, vec![])));
        for query in [
            "from=5&to=10",
            "from=5&to=5",
            "from=x",
            "from=-1",
            "to=2026-11-21T09:02:00",
            "format=x",
            "kind=x",
        ] {
            assert!(parse(query).is_err(), "{query}");
        }
        assert_eq!(parse("kind=CPU"), parse(""));
        for (query, part) in
            [("kind=alloc", "/top?pid=PID&kind=alloc"), ("slower_than=1s", "/requests?pid=PID")]
        {
            let problem = format!("{:?}", parse(query).unwrap_err());
            assert!(problem.contains(part), "{problem}");
        }
        let title = ProfileRequest::parse(&Query::parse(Some("pid=7")), NOW).unwrap().report.title;
        assert_eq!(title, "process 7, 2026-11-21T09:01:44Z to 2026-11-21T09:02:44Z");
    }
}
