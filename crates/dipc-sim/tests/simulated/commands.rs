use crate::plain_client::{Answer, NoAnswer, ask, collect, moment, patience, send};
use dipc_sim::{Identity, Runtime, Version};
use dipc_wire::{
    CollectTracing1, CollectTracing3, CollectTracing4, Command as _, CommandId, Environment, Format, HResult,
    Level, Message, ProcessEnvironment, ProcessInfo1, ProcessInfo2, ProcessInfo3, ProviderConfig, Request,
    ResumeRuntime, ServerError, SessionId, StopTracing, decode_reply,
};
use uuid::uuid;

fn unknown() -> ServerError {
    ServerError::new(HResult::UNKNOWN_COMMAND)
}

/// A runtime of this version in a folder of its own.
fn runtime(version: Version) -> (Runtime, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().version(version).start_in(folder.path()).unwrap();
    (runtime, folder)
}

/// The identity of the real process that sent the replies in `testdata/wire`.
fn azmcp() -> Identity {
    let mut identity = Identity::new(13702, Version::NET10);
    identity.runtime_cookie = uuid!("59f63605-a5ad-472e-8bc8-b95da7fabc03");
    identity.command_line = "/srv/mcp10/azmcp /srv/mcp10/azmcp.dll server start".into();
    identity.os = "Linux".into();
    identity.arch = "x64".into();
    identity.managed_entrypoint_assembly = "azmcp".into();
    identity.runtime_identifier = "linux-x64".into();
    identity
}

#[test]
fn process_information_is_the_identity() {
    let folder = tempfile::tempdir().unwrap();
    let identity = azmcp();
    let runtime = Runtime::builder()
        .version(Version::NET10)
        .identity(identity.clone())
        .start_in(folder.path())
        .unwrap();
    assert_eq!(runtime.identity(), &identity);

    let first = ask(&runtime, &ProcessInfo1).unwrap();
    assert_eq!((first.process_id, first.runtime_cookie), (13702, identity.runtime_cookie));
    assert_eq!(
        (first.command_line, first.os, first.arch),
        (identity.command_line, "Linux".into(), "x64".into())
    );
    let second = ask(&runtime, &ProcessInfo2).unwrap();
    assert_eq!(second.managed_entrypoint_assembly, "azmcp");
    assert_eq!(second.clr_version, "10.0.5");
    let third = ask(&runtime, &ProcessInfo3).unwrap();
    assert_eq!((third.version, third.runtime_identifier.as_str()), (1, "linux-x64"));
}

/// The simulated 10.0.5 answers with the same bytes as the real one in `testdata/wire`.
#[test]
fn replies_match_a_real_runtime() {
    let captures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wire/replies");
    let folder = tempfile::tempdir().unwrap();
    let mut identity = azmcp();
    identity.environment = environment_of(&captures.join("process-environment.net10.0.5.txt"));
    let runtime =
        Runtime::builder().version(Version::NET10).identity(identity).start_in(folder.path()).unwrap();
    for (command, request) in [
        ("process-info-1", ProcessInfo1.to_bytes()),
        ("process-info-2", ProcessInfo2.to_bytes()),
        ("process-info-3", ProcessInfo3.to_bytes()),
        ("process-environment", ProcessEnvironment.to_bytes()),
        ("resume-runtime", ResumeRuntime.to_bytes()),
    ] {
        let real = std::fs::read(captures.join(format!("{command}.net10.0.5.reply"))).unwrap();
        let answer = send(&runtime, &request.unwrap(), patience()).unwrap();
        let message = answer.message.to_bytes().unwrap();
        assert_eq!([message, answer.rest()].concat(), real, "{command}");
    }
}

/// The variables in the text next to a captured environment.
fn environment_of(text: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(text).unwrap();
    let variables = text.lines().filter_map(|line| line.strip_prefix("variable \"")?.strip_suffix('"'));
    let variables: Vec<_> = variables.map(String::from).collect();
    assert!(!variables.is_empty() && variables.iter().all(|variable| !variable.contains('\\')));
    variables
}

#[test]
fn the_environment_follows_its_reply() {
    let folder = tempfile::tempdir().unwrap();
    let mut identity = Identity::new(1, Version::NET9);
    // Longer than the longest possible message.
    identity.environment = (0..5000).map(|n| format!("VARIABLE_{n}=grüße 🌍 {n}")).collect();
    let runtime = Runtime::builder().identity(identity.clone()).start_in(folder.path()).unwrap();
    let answer = send(&runtime, &ProcessEnvironment.to_bytes().unwrap(), patience()).unwrap();
    let announced = decode_reply::<ProcessEnvironment>(&answer.message).unwrap().unwrap();
    let block = answer.rest();
    assert_eq!(announced.incoming_bytes as usize, block.len());
    assert!(block.len() > 65_535);
    assert_eq!(Environment::<Vec<String>>::from_bytes(&block).unwrap().0, identity.environment);
}

#[test]
fn resume_answers_with_an_hresult() {
    let (runtime, _folder) = runtime(Version::NET9);
    let answer = send(&runtime, &ResumeRuntime.to_bytes().unwrap(), patience()).unwrap();
    assert_eq!(answer.message.header.size, 24);
    assert_eq!(decode_reply::<ResumeRuntime>(&answer.message).unwrap(), Ok(HResult::OK));
}

#[test]
fn net_core_3_1_supports_sessions_and_refuses_process_commands() {
    let (runtime, _folder) = runtime(Version::NET3_1);
    assert_eq!(ask(&runtime, &ProcessInfo1), Err(unknown()));
    assert_eq!(ask(&runtime, &ProcessInfo2), Err(unknown()));
    assert_eq!(ask(&runtime, &ProcessInfo3), Err(unknown()));
    assert_eq!(ask(&runtime, &ProcessEnvironment), Err(unknown()));
    assert_eq!(ask(&runtime, &ResumeRuntime), Err(unknown()));
    let providers = collect().providers;
    let third = CollectTracing3 { buffer_mb: 1, providers: providers.clone(), ..CollectTracing3::default() };
    assert_eq!(ask(&runtime, &third), Err(unknown()));
    let first = CollectTracing1 { buffer_mb: 1, format: Format::NETTRACE, providers };
    assert!(ask(&runtime, &first).is_ok());
    assert!(ask(&runtime, &collect()).is_ok());
}

#[test]
fn net_8_supports_two_collect_tracing_commands_and_net_9_four() {
    let providers = collect().providers;
    let third = CollectTracing3 { buffer_mb: 1, providers: providers.clone(), ..CollectTracing3::default() };
    let fourth = CollectTracing4 { buffer_mb: 1, providers, ..CollectTracing4::default() };
    let (eight, _folder) = runtime(Version::NET8);
    assert_eq!(ask(&eight, &third), Err(unknown()));
    assert_eq!(ask(&eight, &fourth), Err(unknown()));
    assert!(ask(&eight, &collect()).is_ok());
    for version in [Version::NET9, Version::NET10] {
        let (later, _folder) = runtime(version);
        assert!(ask(&later, &third).is_ok() && ask(&later, &fourth).is_ok(), "{version}");
    }
}

#[test]
fn a_command_of_no_version_is_an_unknown_command() {
    let (runtime, _folder) = runtime(Version::NET10);
    let next_dump = CommandId { id: 9, ..CommandId::GENERATE_CORE_DUMP_1 };
    for command in [CommandId::COLLECT_TRACING_6, next_dump, CommandId::OK] {
        let request = Message::new(command, vec![1, 2, 3]).unwrap().to_bytes().unwrap();
        let mut answer = send(&runtime, &request, patience()).unwrap();
        assert_eq!(answer.message.header.size, 24);
        assert_eq!(decode_reply::<ProcessInfo1>(&answer.message).unwrap(), Err(unknown()), "{command}");
        assert!(answer.is_closed(patience()), "{command}");
    }
}

#[test]
fn rejects_malformed_messages() {
    let (runtime, _folder) = runtime(Version::NET9);
    let message = ProcessInfo1.to_bytes().unwrap();
    let mut wrong_magic = message.clone();
    wrong_magic[12] = b'2';
    let mut wrong_size = message;
    wrong_size[14] = 19;
    for (bytes, hresult) in [(wrong_magic, HResult::UNKNOWN_MAGIC), (wrong_size, HResult::BAD_ENCODING)] {
        let mut answer = send(&runtime, &bytes, patience()).unwrap();
        let error = decode_reply::<ProcessInfo1>(&answer.message).unwrap().unwrap_err();
        assert_eq!(error, ServerError::new(hresult));
        assert!(answer.is_closed(patience()));
    }
}

/// Requests with parameters out of range, except requests that end some versions.
fn bad_requests() -> Vec<Vec<u8>> {
    let good = collect();
    let provider = good.providers[0].clone();
    let with = |providers| dipc_wire::CollectTracing2 { providers, ..good.clone() }.to_bytes().unwrap();
    let cut = {
        let whole = good.to_bytes().unwrap();
        let payload = whole[20..whole.len() - 6].to_vec();
        Message::new(CommandId::COLLECT_TRACING_2, payload).unwrap().to_bytes().unwrap()
    };
    vec![
        with(Vec::new()),
        with(vec![ProviderConfig { level: Level(6), ..provider.clone() }]),
        with(vec![ProviderConfig { name: String::new(), ..provider.clone() }]),
        with(vec![ProviderConfig { name: "P".into(), ..provider }; 1001]),
        cut,
    ]
}

fn refusal(answer: &Answer) -> HResult {
    decode_reply::<dipc_wire::CollectTracing2>(&answer.message).unwrap().unwrap_err().hresult
}

#[test]
fn a_bad_session_is_refused_and_later_versions_keep_the_connection_open() {
    for version in Version::ALL {
        let (runtime, _folder) = runtime(*version);
        let stays_open = ![Version::NET3_1, Version::NET6, Version::NET8].contains(version);
        for request in bad_requests() {
            let mut answer = send(&runtime, &request, patience()).unwrap();
            assert_eq!(refusal(&answer), HResult::BAD_ENCODING, "{version}");
            // Staying open can only be shown for a moment; closing has the longer deadline.
            let deadline = if stays_open { moment() } else { patience() };
            assert_eq!(answer.is_closed(deadline), !stays_open, "{version}");
        }
        assert_eq!(runtime.session_count(), 0);
    }
}

#[test]
fn a_buffer_of_size_0_and_an_unknown_format_are_refused_or_end_the_process() {
    let good = collect();
    let bad = [
        dipc_wire::CollectTracing2 { buffer_mb: 0, ..good.clone() },
        dipc_wire::CollectTracing2 { format: Format(7), ..good },
    ];
    for request in bad {
        let request = request.to_bytes().unwrap();
        for version in [Version::NET3_1, Version::NET10, Version::NET11] {
            let (runtime, _folder) = runtime(version);
            let answer = send(&runtime, &request, patience()).unwrap();
            assert_eq!(refusal(&answer), HResult::BAD_ENCODING);
            assert!(!runtime.has_died());
        }
        for version in [Version::NET8, Version::NET9, Version::NATIVE_AOT_9] {
            let (runtime, _folder) = runtime(version);
            match send(&runtime, &request, patience()) {
                Err(NoAnswer::End(0)) => {}
                Err(NoAnswer::Transport(error)) if error.is_disconnected() => {}
                other => panic!("{:?}", other.map(|answer| answer.message)),
            }
            assert!(runtime.has_died());
        }
    }
}

#[test]
fn stopping_a_session_that_does_not_exist_succeeds() {
    let (runtime, _folder) = runtime(Version::NET9);
    assert_eq!(ask(&runtime, &StopTracing { session: SessionId(0x1234) }), Ok(SessionId(0x1234)));
}

#[test]
fn bytes_after_the_known_payload_are_ignored() {
    let (runtime, _folder) = runtime(Version::NET9);
    let payload = [0x1234_u64.to_le_bytes().as_slice(), b"more"].concat();
    let request = Message::new(CommandId::STOP_TRACING, payload).unwrap().to_bytes().unwrap();
    let answer = send(&runtime, &request, patience()).unwrap();
    assert_eq!(decode_reply::<StopTracing>(&answer.message).unwrap(), Ok(SessionId(0x1234)));
}

#[test]
fn a_request_that_arrives_in_pieces_is_answered_when_it_is_complete() {
    let (runtime, _folder) = runtime(Version::NET9);
    let mut connection = crate::plain_client::connect(&runtime);
    for byte in ResumeRuntime.to_bytes().unwrap() {
        connection.write_all(&[byte], patience()).unwrap();
    }
    let mut reply: Vec<u8> = Vec::new();
    let mut buffer = [0; 64];
    loop {
        match connection.read(&mut buffer, patience()).unwrap() {
            0 => break,
            count => reply.extend(&buffer[..count]),
        }
    }
    assert_eq!(reply, dipc_wire::encode_ok(&HResult::OK).unwrap());
}

#[test]
fn a_silent_client_does_not_delay_others() {
    let (runtime, _folder) = runtime(Version::NET9);
    let silent = crate::plain_client::connect(&runtime);
    assert!(ask(&runtime, &ProcessInfo3).is_ok());
    drop(silent);
}

#[test]
fn requests_are_recorded_in_order() {
    let (runtime, _folder) = runtime(Version::NET3_1);
    let _ = ask(&runtime, &ProcessInfo3);
    let _ = ask(&runtime, &StopTracing { session: SessionId(5) });
    let expected: [Request; 2] = [ProcessInfo3.into(), StopTracing { session: SessionId(5) }.into()];
    assert_eq!(runtime.requests(), expected);
}

#[test]
fn an_incomplete_request_is_not_answered() {
    let (runtime, _folder) = runtime(Version::NET9);
    let result = send(&runtime, b"DOTNET_IPC_V1\0", moment());
    assert!(matches!(result, Err(NoAnswer::Transport(error)) if error.is_timeout()));
}
