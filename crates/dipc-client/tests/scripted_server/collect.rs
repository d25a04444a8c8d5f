//! The forms in which a session is requested.

use dipc_client::dipc_wire::{
    CollectTracing6, CommandId, Keywords, Level, Request, StreamingSession, StreamingSession6, encode_ok,
};
use dipc_client::{
    BufferMode, Error, ErrorKind, EventFilter, OptionalFeature, ProviderConfig, Rundown, SessionConfig,
};

use crate::server::{ID, Server, patient, refuse, reply, sent_by};

pub(crate) fn collect() -> SessionConfig {
    let provider = ProviderConfig {
        keywords: Keywords(1),
        level: Level::INFORMATIONAL,
        name: "Some-Provider".into(),
        arguments: String::new(),
    };
    SessionConfig::new([provider])
}

const COLLECT_COMMANDS: [CommandId; 6] = [
    CommandId::COLLECT_TRACING_6,
    CommandId::COLLECT_TRACING_5,
    CommandId::COLLECT_TRACING_4,
    CommandId::COLLECT_TRACING_3,
    CommandId::COLLECT_TRACING_2,
    CommandId::COLLECT_TRACING_1,
];

/// A server that knows the CollectTracing commands up to `newest`, and sends an empty stream.
fn server_with_collect(newest: u8) -> Server {
    Server::start(move |request, mut connection| {
        let known =
            request.command().set == CommandId::COLLECT_TRACING_1.set && request.command().id <= newest + 1;
        if known {
            reply(&mut connection, &encode_ok(&ID).unwrap());
        } else {
            refuse(&mut connection);
        }
    })
}

#[test]
fn collect_falls_back_to_the_newest_form_that_is_known() {
    let names = [
        "CollectTracing6",
        "CollectTracing5",
        "CollectTracing4",
        "CollectTracing3",
        "CollectTracing2",
        "CollectTracing",
    ];
    for (tried, name) in names.into_iter().enumerate() {
        let server = server_with_collect(6 - u8::try_from(tried).unwrap());
        let mut session = server.target().start_session(&collect()).unwrap();
        assert_eq!((session.command(), session.id()), (name, ID));
        assert_eq!(session.read(&mut [0; 8], patient()).unwrap(), 0);
        server.assert_seen(&COLLECT_COMMANDS[..=tried]);
    }
    let server = server_with_collect(0);
    assert!(matches!(server.target().start_session(&collect()).unwrap_err(), Error::UnknownCommand { .. }));
    server.assert_seen(&COLLECT_COMMANDS);
}

/// Options that only a newer form has, with that form's name and number.
fn demanding() -> [(SessionConfig, OptionalFeature, &'static str, u8); 5] {
    let mut filtered = collect();
    filtered.providers[0].filter = EventFilter { enable: true, ids: vec![4, 5] };
    [
        (collect().with_buffer_mode(BufferMode::BLOCK), OptionalFeature::BlockWhenFull, "CollectTracing6", 6),
        (filtered, OptionalFeature::EventFilter, "CollectTracing5", 5),
        (
            collect().with_rundown(Rundown::Keyword(Keywords(1))),
            OptionalFeature::RundownKeyword,
            "CollectTracing4",
            4,
        ),
        (collect().with_stackwalk(false), OptionalFeature::NoStacks, "CollectTracing3", 3),
        (collect().with_rundown(Rundown::Off), OptionalFeature::NoRundown, "CollectTracing2", 2),
    ]
}

#[test]
fn options_without_a_known_form_are_errors_and_not_sent() {
    for (collect, needed, name, form) in demanding() {
        let server = server_with_collect(form - 1);
        let error = server.target().start_session(&collect).unwrap_err();
        assert!(
            matches!(error, Error::UnsupportedOption { command, feature, .. } if command == name && feature == needed),
            "{error:?}"
        );
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        server.assert_seen(&COLLECT_COMMANDS[..7 - usize::from(form)]);
    }
}

#[test]
fn optional_features_are_dropped_only_where_needed() {
    for (collect, feature, name, form) in demanding() {
        let others = OptionalFeature::ALL.iter().copied().filter(|other| *other != feature).collect();
        let server = server_with_collect(form - 1);
        let error = server.target().start_session(&collect.clone().with_optional(others)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");

        let collect = collect.with_optional(vec![feature]);
        let session = server.target().start_session(&collect).unwrap();
        assert_eq!(session.dropped_features(), [feature]);

        let server = server_with_collect(form);
        let session = server.target().start_session(&collect).unwrap();
        assert_eq!((session.command(), session.dropped_features()), (name, &[][..]));
    }
}

#[test]
fn a_target_and_its_clones_try_an_unknown_command_once() {
    let server = server_with_collect(2);
    let target = server.target();
    assert_eq!(target.clone().start_session(&collect()).unwrap().command(), "CollectTracing2");
    let stop = CommandId::STOP_TRACING;
    server.assert_seen(&[&COLLECT_COMMANDS[..5], &[stop]].concat());
    assert!(target.is_unknown(CommandId::COLLECT_TRACING_3) && !target.is_unknown(stop));
    assert_eq!(target.start_session(&collect()).unwrap().command(), "CollectTracing2");
    server.assert_seen(&[CommandId::COLLECT_TRACING_2, stop]);

    let error = target.start_session(&collect().with_stackwalk(false)).unwrap_err();
    assert!(matches!(error, Error::UnsupportedOption { .. }), "{error:?}");
    for _ in 0..2 {
        let error = target.environment().unwrap_err();
        assert!(matches!(error, Error::UnknownCommand { command: "ProcessEnvironment", .. }), "{error:?}");
    }
    server.assert_seen(&[CommandId::PROCESS_ENVIRONMENT]);
    // Another target may be another runtime.
    assert!(server.target().environment().is_err());
    server.assert_seen(&[CommandId::PROCESS_ENVIRONMENT]);
}

#[test]
fn everything_asked_for_arrives() {
    let mut wanted = collect()
        .with_buffer_mb(3)
        .with_buffer_mode(BufferMode::BLOCK)
        .with_rundown(Rundown::Keyword(Keywords(0x42)))
        .with_stackwalk(false);
    wanted.providers[0].filter = EventFilter { enable: false, ids: vec![7] };
    let sent = sent_by(
        |target| {
            let mut session = target.start_session(&wanted).unwrap();
            assert_eq!(session.read(&mut [0; 8], patient()).unwrap(), 0);
        },
        encode_ok(&ID).unwrap(),
    );
    let session = StreamingSession {
        buffer_mb: 3,
        format: wanted.format,
        rundown_keyword: Keywords(0x42),
        request_stackwalk: false,
        providers: wanted.providers,
    };
    let expected = StreamingSession6 { session, buffer_mode: BufferMode::BLOCK };
    assert_eq!(sent, [Request::CollectTracing6(CollectTracing6::Streaming(expected))]);
}

#[test]
fn more_than_fits_into_a_message_is_refused_here() {
    let server = server_with_collect(6);
    let provider = ProviderConfig { name: "x".repeat(33_000), ..ProviderConfig::default() };
    let error = server.target().start_session(&SessionConfig::new([provider])).unwrap_err();
    assert!(matches!(error, Error::Encode { command: "CollectTracing6", .. }), "{error:?}");
}
