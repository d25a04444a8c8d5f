//! The methods of the client: the forms that they use, and the commands that they block.

use dipc_client::{
    BufferMode, Deadline, Dump, DumpFlags, DumpType, Error, Keywords, Level, OptionalFeature, PerfMapType,
    ProviderConfig, Rundown, Session, SessionConfig,
};

use crate::Case;
use crate::forms::{CLASS, NO_FILE, running, suspended};
use crate::startup::hook;
use crate::subject::{PATIENCE, Subject};

pub(crate) const CASES: &[Case] = &[
    running("Target::info", |it| {
        let info = it.target().info();
        said(it, info, |info| format!("by {}", info.command))
    }),
    running("Target::environment", |it| {
        let environment = it.target().environment();
        said(it, environment, |_| String::new())
    }),
    running("Target::set_environment_variable", |it| {
        let result = it.target().set_environment_variable("DIPC_VARIABLE", Some("v"));
        said(it, result, |()| String::new())
    }),
    running("Target::set_environment_variable to None", |it| {
        let result = it.target().set_environment_variable("DIPC_VARIABLE", None);
        said(it, result, |()| String::new())
    }),
    running("Target::resume", |it| {
        let result = it.target().resume();
        said(it, result, |()| String::new())
    }),
    running("Target::enable_perf_map", |it| {
        let result = it.target().enable_perf_map(PerfMapType::ALL);
        said(it, result, |()| String::new())
    }),
    running("Target::disable_perf_map", |it| {
        let result = it.target().disable_perf_map();
        said(it, result, |()| String::new())
    }),
    suspended("Target::enable_perf_map, suspended", |it| {
        let result = it.target().enable_perf_map(PerfMapType::ALL);
        said(it, result, |()| String::new())
    }),
    running("Target::apply_startup_hook of one that runs", |it| {
        let result = it.target().apply_startup_hook(&hook());
        said(it, result, |()| String::new())
    }),
    suspended("Target::apply_startup_hook, suspended", |it| {
        it.spend();
        let result = it.target().apply_startup_hook(&hook());
        said(it, result, |()| String::new())
    }),
    suspended("Target::apply_startup_hook, suspended, of a file that does not exist", |it| {
        let result = it.target().apply_startup_hook(NO_FILE);
        said(it, result, |()| String::new())
    }),
    running("Target::attach_profiler", |it| {
        let result = it.target().attach_profiler(CLASS, NO_FILE, PATIENCE, &[]);
        said(it, result, |()| String::new())
    }),
    running("Target::startup_profiler", |it| {
        let result = it.target().startup_profiler(CLASS, NO_FILE);
        said(it, result, |()| String::new())
    }),
    running("Target::dump", |it| dump(it, &Dump::new("core"))),
    running("Target::dump, normal, with crash report", |it| {
        dump(it, &Dump::new("core").with_dump_type(DumpType::NORMAL).with_flags(DumpFlags::CRASH_REPORT))
    }),
    running("Target::dump, normal, with crash report if possible", |it| {
        let (dump_type, flags) = (DumpType::NORMAL, DumpFlags::CRASH_REPORT);
        dump(
            it,
            &Dump::new("core")
                .with_dump_type(dump_type)
                .with_flags(flags)
                .with_optional(vec![OptionalFeature::CrashReport]),
        )
    }),
    running("Target::start_session", |it| collect(it, |_| {})),
    running("Target::start_session without rundown", |it| {
        collect(it, |collect| collect.rundown = Rundown::Off)
    }),
    running("Target::start_session without stacks", |it| collect(it, |collect| collect.stackwalk = false)),
    running("Target::start_session with a rundown by keyword", |it| {
        collect(it, |collect| collect.rundown = Rundown::Keyword(Keywords::LOADER))
    }),
    running("Target::start_session with an event filter", |it| {
        collect(it, |collect| collect.providers[0].filter.ids = vec![1])
    }),
    running("Target::start_session that blocks", |it| {
        collect(it, |collect| collect.buffer_mode = BufferMode::BLOCK)
    }),
    running("Target::start_session with all of that if possible", |it| {
        collect(it, |collect| {
            collect.rundown = Rundown::Keyword(Keywords::LOADER);
            collect.stackwalk = false;
            collect.providers[0].filter.ids = vec![1];
            collect.buffer_mode = BufferMode::BLOCK;
            collect.optional = OptionalFeature::ALL.to_vec();
        })
    }),
];

fn said<T>(it: &Subject, result: Result<T, Error>, text: impl FnOnce(T) -> String) -> String {
    match result.map(text) {
        Ok(text) if text.is_empty() => "ok".into(),
        Ok(text) => format!("ok: {text}"),
        Err(error) => it.said(&error),
    }
}

fn dump(it: &Subject, dump: &Dump) -> String {
    let written = it.target().dump(dump);
    let text = said(it, written, |written| {
        let seen = if written.bytes.is_some_and(|bytes| bytes > 0) { "seen" } else { "NOT SEEN" };
        format!("by {}, {seen}{}", written.command, dropped_features(&written.dropped_features))
    });
    for left in ["core", "core.crashreport.json"] {
        let _ = std::fs::remove_file(it.path(left));
    }
    text
}

fn collect(it: &Subject, change: impl FnOnce(&mut SessionConfig)) -> String {
    let provider = ProviderConfig {
        keywords: Keywords::ALL,
        level: Level::INFORMATIONAL,
        name: "Some-Provider".into(),
        arguments: String::new(),
    };
    let mut collect = SessionConfig::new([provider]).with_buffer_mb(8);
    change(&mut collect);
    let session = it.target().start_session(&collect);
    said(it, session, |mut session| {
        let stopper = session.stopper();
        let stop = std::thread::spawn(move || stopper.stop());
        let beginning = read_to_end(&mut session);
        stop.join().unwrap().unwrap();
        format!(
            "by {}, a stream of {beginning:?}{}",
            session.command(),
            dropped_features(session.dropped_features())
        )
    })
}

/// The first bytes of the stream, once all of it is read.
fn read_to_end(session: &mut Session) -> String {
    let (mut stream, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match session.read(&mut buffer, Deadline::after(PATIENCE)).unwrap() {
            0 => return String::from_utf8_lossy(&stream[..8]).into_owned(),
            count => stream.extend_from_slice(&buffer[..count]),
        }
    }
}

fn dropped_features(optional_features: &[OptionalFeature]) -> String {
    let dropped_features: Vec<_> =
        optional_features.iter().map(|feature| format!(", without {feature:?}")).collect();
    dropped_features.concat()
}
