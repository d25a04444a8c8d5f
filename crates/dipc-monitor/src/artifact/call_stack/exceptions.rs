//! Exceptions: those of the last seconds from the black box, without stacks, as nothing was loaded into the
//! process to keep them; or those thrown while a session runs, with their stacks.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use clr_events::code::Symbolizer;
use dipc_client::LiveReader;
use dipc_collect::StopSignal;
use dipc_collect::exceptions::{self, Exceptions, ThrownException};
use dipc_collect::stream::Limits;
use jiff::Timestamp;
use serde::Serialize;

use super::CallStack;
use crate::artifact::{ArtifactError, ArtifactSink, LogFormat, begin, snapshot, stream, write};
use crate::process::Watched;

/// The exceptions to collect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct ExceptionsRequest {
    /// Inclusive filters: at least one has to match. All exceptions without any.
    pub include: Vec<ExceptionFilter>,
    /// Exclusive filters: no filter may match.
    pub exclude: Vec<ExceptionFilter>,
    /// The form.
    pub format: LogFormat,
    /// The time after which it ends; `None` is without a limit.
    pub duration: Option<Duration>,
    /// True for exceptions of the past where the process has a black box: then there is nothing to wait for.
    pub past: bool,
}

/// A filter: all that is given has to match, whole names. Of the stack, its innermost managed frame is
/// compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct ExceptionFilter {
    /// The full name of the exception's type.
    pub exception_type: Option<String>,
    /// The file of the method that threw.
    pub module_name: Option<String>,
    /// The full name of its type.
    pub type_name: Option<String>,
    /// The name of the method.
    pub method_name: Option<String>,
}

/// An exception, as dotnet-monitor describes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Exception {
    id: u64,
    timestamp: String,
    type_name: String,
    module_name: String,
    message: String,
    /// Events do not have them.
    inner_exceptions: [(); 0],
    stack: CallStack,
}

impl Exception {
    /// Describes an exception. `start` is the beginning of the stream in Unix nanoseconds. Without a
    /// `symbolizer`, it has no stack.
    fn of(
        thrown: &ThrownException,
        id: u64,
        start: Option<i128>,
        symbolizer: Option<Symbolizer<'_>>,
    ) -> Self {
        let nanoseconds = start.map(|start| start + i128::from(thrown.time.as_nanos()));
        let time = nanoseconds.and_then(|time| Timestamp::from_nanosecond(time).ok());
        let frames = symbolizer.map(|symbolizer| thrown.frames(symbolizer)).unwrap_or_default();
        let stack = CallStack::of(thrown.stack.thread(), frames);
        Self {
            id,
            timestamp: time.unwrap_or_else(Timestamp::now).strftime("%Y-%m-%dT%H:%M:%S.%7fZ").to_string(),
            type_name: thrown.type_name.clone(),
            module_name: stack.frames.first().map(|frame| frame.module_name.clone()).unwrap_or_default(),
            message: thrown.message.clone(),
            inner_exceptions: [],
            stack,
        }
    }
}

impl ExceptionFilter {
    fn matches(&self, exception: &Exception) -> bool {
        let frame = exception.stack.frames.first();
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        is(&self.exception_type, Some(&exception.type_name))
            && is(&self.module_name, frame.map(|frame| &*frame.module_name))
            && is(&self.type_name, frame.map(|frame| &*frame.type_name))
            && is(&self.method_name, frame.map(|frame| &*frame.method_name))
    }
}

impl ExceptionsRequest {
    fn accepts(&self, exception: &Exception) -> bool {
        let is_included = self.include.is_empty() || self.include.iter().any(|it| it.matches(exception));
        is_included && !self.exclude.iter().any(|filter| filter.matches(exception))
    }
}

pub(in crate::artifact) fn collect(
    request: &ExceptionsRequest,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    if let Some(last_seconds) = process.last_seconds.get().filter(|_| request.past) {
        let mut past = Past::default();
        snapshot::write(&snapshot::take(&**last_seconds)?, &mut past)?;
        begin(sink)?;
        let (mut exceptions, reader) = past.finish();
        return write_all(request, &mut exceptions, &reader, false, sink);
    }
    let session = stream::start(process, &exceptions::session_config(), stop)?;
    begin(sink)?;
    let limits = Limits::new(stop.clone()).with_duration(request.duration);
    let mut collected = exceptions::read(session, &limits, &mut ());
    stream::require_end(collected.end)?;
    write_all(request, &mut collected.exceptions, &collected.reader, true, sink)
}

/// Writes the exceptions that were asked for.
fn write_all(
    request: &ExceptionsRequest,
    exceptions: &mut Exceptions,
    reader: &LiveReader,
    has_stacks: bool,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let start = reader.info().and_then(|info| info.start.unix_milliseconds());
    let start = start.map(|start| i128::from(start) * 1_000_000);
    let first = exceptions.dropped().saturating_add(1);
    let (thrown, symbolizer) = exceptions.resolve();
    let symbolizer = has_stacks.then_some(symbolizer);
    for (thrown, id) in thrown.zip(first..) {
        let exception = Exception::of(thrown, id, start, symbolizer);
        if request.accepts(&exception) {
            write(sink, &encode(&exception, request.format))?;
        }
    }
    Ok(())
}

/// A reader of the recording that is written into it.
struct Past {
    reader: LiveReader,
    exceptions: Exceptions,
}

impl Default for Past {
    fn default() -> Self {
        Self { reader: LiveReader::in_whole_order(), exceptions: Exceptions::default() }
    }
}

impl Past {
    fn read(&mut self) {
        let Self { reader, exceptions } = self;
        reader.for_each(|event| exceptions.add(event));
    }

    /// Reads the last events.
    fn finish(mut self) -> (Exceptions, LiveReader) {
        self.reader.end_of_input();
        self.read();
        (self.exceptions, self.reader)
    }
}

impl io::Write for Past {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.reader.feed(bytes);
        self.read();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn encode(exception: &Exception, format: LogFormat) -> Vec<u8> {
    if format == LogFormat::PlainText {
        return text(exception).into_bytes();
    }
    let mut bytes = Vec::new();
    if format == LogFormat::JsonSequence {
        bytes.push(0x1e);
    }
    // Texts and numbers can be written.
    bytes.extend(serde_json::to_vec(exception).unwrap_or_default());
    bytes.push(b'\n');
    bytes
}

fn text(exception: &Exception) -> String {
    let mut text = format!("First chance exception at {}\n", exception.timestamp);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}: {}", exception.type_name, exception.message);
    for frame in exception.stack.frames.iter().filter(|frame| !frame.hidden) {
        let _ = writeln!(text, "   at {}({})", frame.qualified(), frame.parameter_types.join(","));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::super::Frame;
    use super::*;

    fn exception() -> Exception {
        let frame = Frame {
            method_name: "Buy".to_owned(),
            method_token: 7,
            parameter_types: vec!["int32".to_owned(), "bool".to_owned()],
            type_name: "Shop.Cart".to_owned(),
            module_name: "shop.dll".to_owned(),
            hidden: false,
        };
        let helper = Frame {
            method_name: "ThrowInvalidOperationException".to_owned(),
            type_name: "System.ThrowHelper".to_owned(),
            hidden: true,
            ..frame.clone()
        };
        Exception {
            id: 2,
            timestamp: "2023-07-13T21:45:11.8056355Z".to_owned(),
            type_name: "System.InvalidOperationException".to_owned(),
            module_name: "shop.dll".to_owned(),
            message: "no".to_owned(),
            inner_exceptions: [],
            stack: CallStack { thread_id: 1, thread_name: None, frames: vec![frame, helper] },
        }
    }

    #[test]
    fn formats_match_dotnet_monitor() {
        assert_eq!(
            text(&exception()),
            "First chance exception at 2023-07-13T21:45:11.8056355Z\nSystem.InvalidOperationException: no\n   at Shop.Cart.Buy(int32,bool)\n\n"
        );
        let sequence = encode(&exception(), LogFormat::JsonSequence);
        let json: serde_json::Value = serde_json::from_slice(&sequence[1..]).unwrap();
        assert_eq!(sequence[0], 0x1e);
        assert_eq!((&json["id"], &json["innerExceptions"]), (&2.into(), &serde_json::json!([])));
        let frames = &json["stack"]["frames"];
        assert_eq!(frames[0]["parameterTypes"], serde_json::json!(["int32", "bool"]));
        assert_eq!((&frames[0]["hidden"], &frames[1]["hidden"]), (&false.into(), &true.into()));
    }

    #[test]
    fn filters_include_and_exclude() {
        let filter = |exception_type: Option<&str>, method_name: Option<&str>| ExceptionFilter {
            exception_type: exception_type.map(ToOwned::to_owned),
            method_name: method_name.map(ToOwned::to_owned),
            ..ExceptionFilter::default()
        };
        let invalid = Some("System.InvalidOperationException");
        let rows = [
            (vec![], vec![], true),
            (vec![filter(invalid, None)], vec![], true),
            (vec![filter(invalid, Some("Sell"))], vec![], false),
            (vec![filter(None, Some("Sell")), filter(None, Some("Buy"))], vec![], true),
            (vec![], vec![filter(invalid, None)], false),
            (vec![], vec![filter(invalid, Some("Sell"))], true),
        ];
        for (include, exclude, expected) in rows {
            let request = ExceptionsRequest { include, exclude, ..ExceptionsRequest::default() };
            assert_eq!(request.accepts(&exception()), expected, "{request:?}");
        }
    }
}
