//! A session into user_events: first the request, then the descriptor, then the answer.

#![cfg(unix)]

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::time::Duration;

use dipc_client::dipc_wire::{
    CollectTracing5, EventExtension, Request, TracepointConfig, UserEventsProviderConfig,
};
use dipc_client::{
    Error, ErrorKind, EventFilter, HResult, Keywords, Level, ProviderConfig, Target, Timeouts,
};
use dipc_sim::{Builder, Runtime, Version};

const STEP: Duration = Duration::from_secs(10);

fn provider() -> UserEventsProviderConfig {
    UserEventsProviderConfig {
        provider: ProviderConfig {
            name: "Pröviders".into(),
            level: Level::INFORMATIONAL,
            keywords: Keywords(1),
            arguments: String::new(),
        },
        filter: EventFilter::default(),
        tracepoints: TracepointConfig { default_tracepoint: "events".into(), sets: Vec::new() },
    }
}

fn start(builder: Builder) -> (tempfile::TempDir, Runtime, Target) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = builder.start_in(folder.path()).unwrap();
    let timeouts = Timeouts::default().with_request(STEP).with_stop(STEP).with_abandon(STEP);
    let target = Target::at(runtime.address()).with_timeouts(timeouts);
    (folder, runtime, target)
}

/// A file that the runtime writes to, and our reading end.
fn file() -> (tempfile::NamedTempFile, File) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let reading = file.reopen().unwrap();
    (file, reading)
}

#[test]
fn the_runtime_writes_to_the_file_that_it_was_handed() {
    let (_folder, runtime, target) = start(Runtime::builder().version(Version::NET10).user_events());
    let (writing, mut reading) = file();
    let session = target
        .start_user_events_session(vec![provider()], Keywords::NONE, writing.as_file().as_fd())
        .unwrap();
    let mut bytes = Vec::new();
    reading.read_to_end(&mut bytes).unwrap();
    // Index, version, event id, an extension of 51 bytes, a payload of nine letters.
    let name: Vec<u8> = "Pröviders".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let head = [0, 0, 0, 0, 1, 1, 0, 4, 0, 51, 0, 51, 0, 18, 0];
    let (extension, payload) = bytes.strip_prefix(&head).unwrap().split_at(51);
    assert_eq!(payload, name);
    // The first event of a kind is described, as the real runtime's.
    let description = EventExtension::from_bytes(extension).unwrap().metadata.unwrap();
    assert_eq!(description[..20], [&name[..], &[0, 0]].concat());
    assert_eq!((description[20..24].to_vec(), description.len()), (vec![1, 0, 0, 0], 46));
    assert_eq!(runtime.session_count(), 1);
    assert!(matches!(
        runtime.requests().first(),
        Some(Request::CollectTracing5(CollectTracing5::UserEvents(session))) if session.providers == [provider()]
    ));
    session.stop().unwrap();
    assert_eq!(runtime.session_count(), 0);
}

#[test]
fn a_session_that_is_dropped_is_stopped() {
    let (_folder, runtime, target) = start(Runtime::builder().version(Version::NET10).user_events());
    let (writing, _) = file();
    drop(
        target
            .start_user_events_session(vec![provider()], Keywords::NONE, writing.as_file().as_fd())
            .unwrap(),
    );
    assert_eq!(runtime.session_count(), 0);
    assert!(matches!(runtime.requests().last(), Some(Request::StopTracing(_))));
}

#[test]
fn rejects_impossible_combinations() {
    let (writing, _) = file();
    let file = writing.as_file().as_fd();
    // Like the real one, on a kernel without user_events.
    let (_folder, _runtime, target) = start(Runtime::builder().version(Version::NET10));
    match target.start_user_events_session(vec![provider()], Keywords::NONE, file) {
        Err(Error::Refused { reason, .. }) => assert_eq!(reason.hresult, HResult::FAIL),
        other => panic!("{other:?}"),
    }
    let (_folder, _runtime, target) = start(Runtime::builder().version(Version::NET9));
    let error = target.start_user_events_session(vec![provider()], Keywords::NONE, file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);

    let (_folder, runtime, target) = start(Runtime::builder().version(Version::NET10).user_events());
    let nowhere = UserEventsProviderConfig { tracepoints: TracepointConfig::default(), ..provider() };
    for providers in [vec![], vec![nowhere]] {
        let error = target.start_user_events_session(providers, Keywords::NONE, file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert!(runtime.requests().is_empty());
}
