//! Reports of a recording of many processes.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, Seek as _};
use std::time::Duration;

use clr_events::{CodeMap, escape_controls};
use nettrace_export::report::{ProcessReport, TopOptions, TopReport};
use nettrace_export::{Format, Metric, NameForm, Options, Profile, ProfileReader, WriteOptions, units};

use super::{MAX_CODE_SIZE, page_of_recording};

/// The form of the samples of a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ProfileFormat {
    /// The recording.
    #[default]
    Nettrace,
    /// The hottest methods, as the JSON of `dipc report topN`.
    Json,
    /// The processes, as the JSON of `dipc report topN --by-process`.
    Processes,
    /// Tables of processes and methods.
    PlainText,
    /// A flame graph.
    Svg,
    /// The page of the recording.
    Html,
}

impl ProfileFormat {
    /// The format of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let names = [
            ("nettrace", Self::Nettrace),
            ("json", Self::Json),
            ("processes", Self::Processes),
            ("text", Self::PlainText),
            ("svg", Self::Svg),
            ("html", Self::Html),
        ];
        names.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, format)| *format)
    }

    /// The media type.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Nettrace => "application/octet-stream",
            Self::Json | Self::Processes => "application/json",
            Self::PlainText => "text/plain; charset=utf-8",
            Self::Svg => "image/svg+xml",
            Self::Html => "text/html; charset=utf-8",
        }
    }

    /// The ending of file names.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Nettrace => "nettrace",
            Self::Json | Self::Processes => "json",
            Self::PlainText => "txt",
            Self::Svg => "svg",
            Self::Html => "html",
        }
    }
}

/// The settings of a report.
#[derive(Debug, Clone)]
pub(crate) struct ProfileReportRequest {
    pub(crate) format: ProfileFormat,
    /// The time and the processes, in words.
    pub(crate) title: String,
    /// Maximum number of rows of a table.
    pub(crate) number: usize,
    pub(crate) is_inclusive: bool,
    /// True if the processes are of interest, too.
    pub(crate) has_processes: bool,
}

/// Writes a report of a recording.
///
/// # Errors
/// If the recording cannot be read.
pub(crate) fn report_of_recording(mut file: File, request: &ProfileReportRequest) -> io::Result<Vec<u8>> {
    file.rewind()?;
    if request.format == ProfileFormat::Html {
        return page_of_recording(BufReader::new(file), &request.title);
    }
    let profile = profile(file)?;
    let top = || {
        let options = TopOptions::default().with_inclusive(request.is_inclusive).with_number(request.number);
        TopReport::new(&profile, options)
    };
    let processes = || {
        let mut report = ProcessReport::new(&profile);
        report.processes.truncate(request.number);
        report
    };
    match request.format {
        ProfileFormat::Json => serde_json::to_vec(&top()).map_err(io::Error::other),
        ProfileFormat::Processes => serde_json::to_vec(&processes()).map_err(io::Error::other),
        ProfileFormat::Svg => {
            let mut bytes = Vec::new();
            let options = WriteOptions::new(&request.title, "dipc monitor");
            nettrace_export::write(&profile, Format::Svg, options, &mut bytes)?;
            Ok(bytes)
        }
        _ => {
            let processes = request.has_processes.then(processes);
            Ok(tables(&request.title, processes.as_ref(), &top()).into_bytes())
        }
    }
}

fn profile(file: File) -> io::Result<Profile> {
    let recording = nettrace::Reader::new(BufReader::new(file)).map_err(io::Error::other)?;
    let mut limit_code = |code: &mut CodeMap| *code = CodeMap::with_limit(MAX_CODE_SIZE);
    let options = Options::new(Metric::Cpu).with_names(NameForm::CSharp);
    let read = ProfileReader::new(options).with_code(&mut limit_code).read(recording, |_| {});
    Ok(read.map_err(io::Error::other)?.profile)
}

/// Writes the reports as tables. All strings are from processes.
fn tables(title: &str, processes: Option<&ProcessReport>, top: &TopReport) -> String {
    let time = |nanoseconds| units::time(Duration::from_nanos(nanoseconds));
    let total = time(top.total);
    let mut text = format!("{}: {total} of processors, {} samples\n", escape_controls(title), top.samples);
    if let Some(report) = processes {
        let _ = writeln!(text, "\n{:>10}{:>8}{:>10}  PROCESS", "CPU", "%", "PID");
        for row in &report.processes {
            let name = row.name.as_deref().unwrap_or("-");
            let most = row.top.as_ref().map_or(String::new(), |top| {
                format!(", most in {} ({:.0}%)", escape_controls(&top.frame), top.percent)
            });
            let cpu = time(row.weight);
            let name = escape_controls(name);
            let _ = writeln!(text, "{cpu:>10}{:>7.2}%{:>10}  {name}{most}", row.percent, row.pid);
        }
    }
    let _ = writeln!(text, "\n{:>10}{:>10}  METHOD", "SELF", "TOTAL");
    for row in &top.rows {
        let method = escape_controls(&row.csharp);
        let _ = writeln!(text, "{:>9.2}%{:>9.2}%  {method}", row.exclusive_percent, row.inclusive_percent);
    }
    text
}
