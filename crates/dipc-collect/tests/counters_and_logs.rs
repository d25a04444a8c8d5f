//! Counters and log records of simulated runtimes.
#![cfg(target_os = "linux")]

use std::convert::Infallible;
use std::time::Duration;

use clr_counters::{METRICS_PROVIDER, ProviderRequest, Selection, SessionSettings};
use dipc_client::Target;
use dipc_collect::counters::{self, CounterEvents, CounterReader, CountersRequest};
use dipc_collect::logs::{self, LogConsumer, LogLevel, LogRecord, LogSelection};
use dipc_collect::session::{self, StartError};
use dipc_collect::stream::{Ending, Limits};
use dipc_collect::{Note, Observer, StopSignal};
use dipc_sim::{Runtime, Version};
use nettrace_synth::{Field, Metadata, Type, Value, clr};

fn unlimited() -> Limits {
    Limits::new(StopSignal::new())
}

/// Adds an event with these strings.
fn add(recording: &mut clr::Recording, (provider, id, name): (&str, u32, &str), fields: &[(&str, &str)]) {
    let metadata = Metadata {
        provider: provider.into(),
        event_id: id,
        name: name.into(),
        fields: fields.iter().map(|(name, _)| Field::new(name, Type::String16)).collect(),
        ..Metadata::default()
    };
    let values: Vec<_> = fields.iter().map(|(_, value)| Value::string16(value)).collect();
    recording.thread(7).at(u64::from(id) * 1_000_000).described(metadata, &values);
}

/// Runs a runtime with sessions that send the recording and end.
fn with_runtime<T>(recording: &clr::Recording, run: impl FnOnce(&Target) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().version(Version::NET9).replay(recording.bytes()).end_with_recording();
    let runtime = runtime.start_in(folder.path()).unwrap();
    run(&Target::from_path(runtime.endpoint_path()))
}

struct Notes(Vec<Note>);

impl Observer for Notes {
    fn note(&mut self, note: Note) {
        self.0.push(note);
    }
}

/// The intervals of the sessions, and the number of their events.
#[derive(Default)]
struct Sessions {
    intervals: Vec<Duration>,
    events: usize,
}

impl CounterReader for Sessions {
    type Error = StartError;

    fn requests(&self, settings: &SessionSettings) -> Vec<ProviderRequest> {
        Selection::default().requests(settings)
    }

    fn begin(&mut self, settings: &SessionSettings) -> Limits {
        self.intervals.push(settings.interval);
        unlimited()
    }

    fn read(&mut self, events: &mut CounterEvents<'_>, _: bool) -> Result<(), StartError> {
        while events.next().is_some() {
            self.events += 1;
        }
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        false
    }
}

#[test]
fn counters_are_requested_again_with_the_settings_of_other_clients() {
    let mut recording = clr::Recording::default();
    let fields = [
        ("clientId", "me"),
        ("expectedMaxHistograms", "20"),
        ("expectedMaxTimeSeries", "1000"),
        ("expectedRefreshInterval", "2"),
    ];
    let refusal = (METRICS_PROVIDER, 17, "MultipleSessionsConfiguredIncorrectlyError");
    add(&mut recording, refusal, &fields);
    let collect = |client: &str| {
        with_runtime(&recording, |target| {
            let request = CountersRequest::new(SessionSettings::default().with_client(client));
            let (mut sessions, mut notes) = (Sessions::default(), Notes(Vec::new()));
            let collected = counters::collect(target, request, &mut sessions, || false, &mut notes).unwrap();
            assert!(matches!(collected.end.ending, Ending::Whole { .. }), "{:?}", collected.end);
            assert!(!collected.is_refused);
            (sessions, notes.0)
        })
    };
    let (second, seconds) = (Duration::from_secs(1), Duration::from_secs(2));
    let (sessions, notes) = collect("me");
    assert_eq!((&*sessions.intervals, sessions.events), (&[second, seconds][..], 2));
    let [Note::SettingsAdopted { settings }] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!((settings.interval, settings.max_histograms), (seconds, 20));
    // Another client was refused.
    let (sessions, notes) = collect("you");
    assert_eq!((&*sessions.intervals, sessions.events, notes), (&[second][..], 1, Vec::new()));
}

#[test]
fn log_records_are_read_from_their_session() {
    struct Lines(Vec<String>);
    impl LogConsumer for Lines {
        type Error = Infallible;

        fn record(&mut self, record: &LogRecord<'_>) {
            let LogRecord { level, category, message, arguments, .. } = record;
            let user = arguments.get("user");
            self.0.push(format!("{} {category}: {message} {user:?}", level.name()));
        }
    }
    let mut recording = clr::Recording::default();
    let source = "Microsoft-Extensions-Logging";
    let head = [("Level", "3"), ("LoggerName", "Shop"), ("EventId", "5"), ("EventName", "Greeted")];
    let formatted = [&head[..], &[("FormattedMessage", "hello ann")]].concat();
    let arguments = [&head[..], &[("ExceptionJson", "{}"), ("ArgumentsJson", r#"{"user":"ann"}"#)]].concat();
    add(&mut recording, (source, 1, "FormattedMessage"), &formatted);
    add(&mut recording, (source, 5, "MessageJson"), &arguments);
    let alone = [&head[..], &[("FormattedMessage", "the last one")]].concat();
    add(&mut recording, (source, 6, "FormattedMessage"), &alone);
    let mut lines = Lines(Vec::new());
    with_runtime(&recording, |target| {
        let config = LogSelection::new(LogLevel::Warning).session_config();
        let session = session::start(target, &config, || false, &mut ()).unwrap();
        let Ok((_, end)) = logs::read(session, &mut lines, &unlimited(), &mut ());
        assert!(matches!(end.ending, Ending::Whole { asked: false }), "{end:?}");
    });
    let expected = [r#"Warning Shop: hello ann Some(String("ann"))"#, "Warning Shop: the last one None"];
    assert_eq!(lines.0, expected);
}
