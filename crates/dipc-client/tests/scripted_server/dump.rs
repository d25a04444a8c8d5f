//! Dumps: the forms in which they are requested, and their results.

use std::fs;
use std::thread;
use std::time::Instant;

use dipc_client::dipc_wire::{
    CommandId, GenerateCoreDump1, GenerateCoreDump3, HResult, Request, ServerError, encode_ok,
    encode_server_error,
};
use dipc_client::{Dump, DumpFlags, DumpType, Error, ErrorKind, OptionalFeature, Timeouts, WrittenDump};

use crate::server::{PATIENCE, SHORT, Server, refuse, reply, sent_by};

const FORMS: [CommandId; 3] =
    [CommandId::GENERATE_CORE_DUMP_3, CommandId::GENERATE_CORE_DUMP_2, CommandId::GENERATE_CORE_DUMP_1];

/// A server that knows the dump commands up to `newest`, and writes one.
fn server_with_dump(newest: u8) -> Server {
    Server::start(move |request, mut connection| {
        if request.command().id > newest {
            return refuse(&mut connection);
        }
        if let Request::GenerateCoreDump1(GenerateCoreDump1 { path, .. })
        | Request::GenerateCoreDump3(GenerateCoreDump3 { path, .. }) = request
        {
            fs::write(path, "core").unwrap();
        }
        reply(&mut connection, &encode_ok(&HResult::OK).unwrap());
    })
}

#[test]
fn a_dump_falls_back_to_the_newest_form_that_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let dump = Dump::new(folder.path().join("core").to_str().unwrap());
    for (tried, name) in
        ["GenerateCoreDump3", "GenerateCoreDump2", "GenerateCoreDump"].into_iter().enumerate()
    {
        let server = server_with_dump(3 - u8::try_from(tried).unwrap());
        let target = server.target();
        let WrittenDump { command, dropped_features, .. } = target.dump(&dump).unwrap();
        assert_eq!((command, dropped_features), (name, vec![]));
        server.assert_seen(&FORMS[..=tried]);
        target.dump(&dump).unwrap();
        server.assert_seen(&FORMS[tried..=tried]);
    }
    let server = server_with_dump(0);
    let error = server.target().dump(&dump).unwrap_err();
    assert!(matches!(error, Error::UnknownCommand { command: "GenerateCoreDump", .. }), "{error:?}");
}

#[test]
fn options_missing_in_the_first_form_are_dropped_only_if_optional() {
    for (flag, feature) in [
        (DumpFlags::VERBOSE_LOGGING, OptionalFeature::VerboseLogging),
        (DumpFlags::CRASH_REPORT, OptionalFeature::CrashReport),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("core");
        let dump = Dump::new(path.to_str().unwrap()).with_flags(DumpFlags::LOGGING | flag);
        let server = server_with_dump(1);
        let error = server.target().dump(&dump).unwrap_err();
        assert!(
            matches!(error, Error::UnsupportedOption { command: "GenerateCoreDump2", feature: found, .. } if found == feature),
            "{error:?}"
        );
        server.assert_seen(&FORMS[..2]);
        let written = server.target().dump(&dump.clone().with_optional(vec![feature])).unwrap();
        assert_eq!(written.dropped_features, [feature]);

        let second = server_with_dump(2);
        assert_eq!(second.target().dump(&dump).unwrap().dropped_features, []);
    }
    let dump = Dump::new("/core").with_flags(DumpFlags(7)).with_optional(OptionalFeature::ALL.to_vec());
    let refusing = encode_server_error(&ServerError::new(HResult::UNKNOWN_COMMAND)).unwrap();
    let sent = sent_by(|target| assert!(target.dump(&dump).is_err()), refusing);
    let flags: Vec<_> = sent
        .iter()
        .map(|request| match request {
            Request::GenerateCoreDump3(it) => it.flags,
            Request::GenerateCoreDump2(it) => it.flags,
            Request::GenerateCoreDump1(it) => it.flags,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(flags, [DumpFlags(7), DumpFlags(7), DumpFlags::LOGGING]);
}

#[test]
#[cfg(target_os = "linux")]
fn the_file_is_looked_for_where_the_target_has_it() {
    let server = server_with_dump(3);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    let written = server.target().dump(&Dump::new(path.to_str().unwrap())).unwrap();
    assert_eq!(written.bytes, Some(4));
    // The target is this process.
    let file = written.file.unwrap();
    assert!(file.starts_with(format!("/proc/{}/root", std::process::id())), "{}", file.display());
    assert_eq!(fs::read_to_string(file).unwrap(), "core");

    let pattern = folder.path().join("core.%p");
    let written = server.target().dump(&Dump::new(pattern.to_str().unwrap())).unwrap();
    assert_eq!((written.file, written.bytes), (None, None), "its name is the runtime's to make up");

    // Reported as written, but missing.
    let nothing = Server::answering(encode_ok(&HResult::OK).unwrap());
    let written = nothing.target().dump(&Dump::new("/no/such/core")).unwrap();
    assert_eq!((written.file, written.bytes), (None, None));
}

#[test]
fn a_failure_carries_the_runtimes_own_words() {
    let detail = "[createdump] Could not create output file\n";
    let error = ServerError::new(HResult::FAIL).with_detail(detail);
    let server = Server::answering(encode_server_error(&error).unwrap());
    let error = server.target().dump(&Dump::new("/core")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().ends_with("[createdump] Could not create output file"), "{error}");
}

#[test]
fn does_not_send_what_every_runtime_rejects() {
    let server = server_with_dump(3);
    for dump in [
        Dump::new(""),
        Dump::new("/core").with_dump_type(DumpType(0)),
        Dump::new("/core").with_dump_type(DumpType(5)),
        Dump::new("/core").with_flags(DumpFlags(8)),
    ] {
        let error = server.target().dump(&dump).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { command: "GenerateCoreDump", .. }), "{error:?}");
    }
    server.assert_seen(&[]);
}

#[test]
fn a_dump_has_a_time_of_its_own() {
    let server = Server::start(|_, mut connection| {
        thread::sleep(SHORT * 4);
        reply(&mut connection, &encode_ok(&HResult::OK).unwrap());
    });
    let patient = Timeouts::default().with_request(SHORT);
    server.target_with(patient).dump(&Dump::new("/core")).unwrap();

    let mut kept = Vec::new();
    let server = Server::start(move |_, connection| kept.push(connection));
    let started = Instant::now();
    let hurried = Timeouts::default().with_dump(SHORT);
    let error = server.target_with(hurried).dump(&Dump::new("/core")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error:?}");
    assert!(started.elapsed() >= SHORT && started.elapsed() < PATIENCE, "{:?}", started.elapsed());
}
