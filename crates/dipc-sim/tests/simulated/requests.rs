//! The requests of Microsoft's tools, byte for byte, and their answers.

use crate::plain_client::{patience, send};
use dipc_sim::{Runtime, Version};
use dipc_wire::{AttachProfiler, CommandId, HResult, ProcessInfo3, Request, StopTracing, decode_reply};
use std::fs;
use std::path::{Path, PathBuf};

/// The captured requests, by name.
fn captured() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wire/requests");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut requests: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "req")).collect();
    // Left out: it would write a dump to the path in the request.
    requests.retain(|path| !path.ends_with("client-generate-core-dump-3.req"));
    requests.sort();
    assert!(requests.len() > 15);
    requests
}

#[test]
fn every_captured_request_is_decoded_and_answered_as_the_version_does() {
    for version in [Version::NET8, Version::NET10, Version::NET11] {
        for path in captured() {
            let folder = tempfile::tempdir().unwrap();
            let runtime = Runtime::builder().version(version).start_in(folder.path()).unwrap();
            let answer = send(&runtime, &fs::read(&path).unwrap(), patience()).unwrap();
            let request = runtime.requests().remove(0);
            let what = format!("{} on {version}: {:?}", path.display(), answer.message);
            assert!(!matches!(request, Request::Unknown(_)), "{what}");
            let header = answer.message.header;
            if !version.supports(request.command()) {
                assert_eq!((header.command, header.size), (CommandId::ERROR, 24), "{what}");
                let error = decode_reply::<ProcessInfo3>(&answer.message).unwrap().unwrap_err();
                assert_eq!(error.hresult, HResult::UNKNOWN_COMMAND, "{what}");
                continue;
            }
            let refusal = match &request {
                // The library does not exist.
                Request::AttachProfiler(_) => Some(HResult::MODULE_NOT_FOUND),
                Request::SetEnvironmentVariable(set) if set.value.is_none() => {
                    Some(HResult::ENVVAR_NOT_FOUND)
                }
                _ => None,
            };
            if let Some(hresult) = refusal {
                let error = decode_reply::<AttachProfiler>(&answer.message).unwrap().unwrap_err();
                assert_eq!(error.hresult, hresult, "{what}");
                continue;
            }
            assert_eq!(header.command, CommandId::OK, "{what}");
            match request {
                Request::ProcessInfo3(_) => {
                    let info = decode_reply::<ProcessInfo3>(&answer.message).unwrap().unwrap();
                    assert_eq!(info.clr_version, version.clr_version());
                }
                Request::ProcessEnvironment(_) => assert_eq!(header.size, 26, "{what}"),
                Request::ResumeRuntime(_)
                | Request::SetEnvironmentVariable(_)
                | Request::EnablePerfMap(_)
                | Request::DisablePerfMap(_)
                | Request::StartupProfiler(_) => assert_eq!(header.size, 24, "{what}"),
                Request::StopTracing(StopTracing { session }) => {
                    assert_eq!(decode_reply::<StopTracing>(&answer.message).unwrap(), Ok(session));
                }
                _ => {
                    assert_eq!(header.size, 28, "{what}");
                    assert_eq!(runtime.session_count(), 1, "{what}");
                }
            }
        }
    }
}
