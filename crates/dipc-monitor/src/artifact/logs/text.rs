//! Log records as dotnet-monitor writes them.

use std::io::Write as _;

use dipc_collect::logs::{LogLevel, LogRecord, LogValues, value_text};
use jiff::Timestamp;
use serde::Serialize;

use super::LogFormat;

/// The members of a record in JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Record<'r> {
    timestamp: String,
    log_level: &'static str,
    event_id: i64,
    event_name: &'r str,
    category: &'r str,
    message: &'r str,
    exception: Option<&'r str>,
    state: &'r LogValues,
    scopes: &'r [&'r LogValues],
}

/// Writes a record.
pub(crate) fn write(record: &LogRecord<'_>, format: LogFormat, out: &mut Vec<u8>) {
    let mut state = LogValues(vec![("Message".to_owned(), record.message.into())]);
    state.0.extend(record.arguments.0.iter().cloned());
    let exception = record.exception.and_then(exception_text);
    let record = Record {
        timestamp: timestamp(record.time),
        log_level: record.level.name(),
        event_id: record.event_id,
        event_name: record.event_name,
        category: record.category,
        message: record.message,
        exception: exception.as_deref(),
        state: &state,
        scopes: &record.scopes,
    };
    match format {
        LogFormat::PlainText => record.write_text(out),
        LogFormat::JsonSequence | LogFormat::NewlineDelimitedJson => {
            // A record of strings and numbers can be written.
            let Ok(json) = serde_json::to_vec(&record) else { return };
            if format == LogFormat::JsonSequence {
                out.push(0x1e);
            }
            out.extend_from_slice(&json);
            out.push(b'\n');
        }
    }
}

fn timestamp(nanoseconds: Option<i128>) -> String {
    let time = nanoseconds.and_then(|time| Timestamp::from_nanosecond(time).ok());
    time.unwrap_or_else(Timestamp::now).strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The text of an exception: what `ToString` returned, or its message.
fn exception_text(exception: &LogValues) -> Option<String> {
    let verbose = exception.get("VerboseMessage").or_else(|| exception.get("Message"))?;
    Some(value_text(verbose)).filter(|text| !text.is_empty())
}

impl Record<'_> {
    /// Writes the record as text.
    fn write_text(&self, out: &mut Vec<u8>) {
        let name = match LogLevel::parse(self.log_level).unwrap_or(LogLevel::None) {
            LogLevel::Trace => "trce",
            LogLevel::Debug => "dbug",
            LogLevel::Information => "info",
            LogLevel::Warning => "warn",
            LogLevel::Error => "fail",
            LogLevel::Critical | LogLevel::None => "crit",
        };
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{} {name}: {}[{}]", self.timestamp, self.category, self.event_id);
        if !self.event_name.is_empty() {
            let _ = write!(out, "[{}]", self.event_name);
        }
        out.push(b'\n');
        let scopes: Vec<_> = self.scopes.iter().filter(|scope| !scope.0.is_empty()).collect();
        if !scopes.is_empty() {
            let pairs = scopes.iter().flat_map(|scope| scope.0.iter());
            let pairs: Vec<_> = pairs.map(|(key, value)| format!("{key}:{}", value_text(value))).collect();
            let _ = writeln!(out, "      => {}", pairs.join(", "));
        }
        for text in [Some(self.message), self.exception].into_iter().flatten() {
            for line in text.lines() {
                let _ = writeln!(out, "      {line}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_form_of_dotnet_monitor() {
        let arguments: LogValues =
            serde_json::from_str(r#"{"user":"ann","{OriginalFormat}":"hello {user}"}"#).unwrap();
        let scope: LogValues = serde_json::from_str(r#"{"RequestId":"7"}"#).unwrap();
        let exception: LogValues = serde_json::from_str(r#"{"VerboseMessage":"Boom\n  at Main"}"#).unwrap();
        let mut record = LogRecord {
            time: Some(1_700_000_000_000_000_000),
            level: LogLevel::Warning,
            event_id: 5,
            event_name: "Greeted",
            category: "Shop",
            message: "hello ann",
            exception: None,
            arguments: &arguments,
            scopes: vec![&scope],
            context: None,
            activity: dipc_client::Uuid::nil(),
            process: None,
        };
        let mut out = Vec::new();
        write(&record, LogFormat::NewlineDelimitedJson, &mut out);
        assert_eq!(
            String::from_utf8(out.clone()).unwrap(),
            "{\"Timestamp\":\"2023-11-14 22:13:20Z\",\"LogLevel\":\"Warning\",\"EventId\":5,\"EventName\":\"Greeted\",\
             \"Category\":\"Shop\",\"Message\":\"hello ann\",\"Exception\":null,\
             \"State\":{\"Message\":\"hello ann\",\"user\":\"ann\",\"{OriginalFormat}\":\"hello {user}\"},\
             \"Scopes\":[{\"RequestId\":\"7\"}]}\n"
        );
        record.exception = Some(&exception);
        out.clear();
        write(&record, LogFormat::PlainText, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2023-11-14 22:13:20Z warn: Shop[5][Greeted]\n      => RequestId:7\n      hello ann\n      Boom\n        at Main\n"
        );
    }
}
