//! The state that commands set, read back through the protocol and from the runtime.

use crate::plain_client::{ask, patience, send};
use dipc_sim::{Identity, Runtime, Version};
use dipc_wire::{
    ApplyStartupHook, AttachProfiler, Command as _, DisablePerfMap, DumpType, EnablePerfMap, Environment,
    GenerateCoreDump3, HResult, PerfMapType, ProcessEnvironment, ProcessInfo1, ProcessInfo2, ProcessInfo3,
    ResumeRuntime, ServerError, SetEnvironmentVariable, StartupProfiler,
};
use uuid::uuid;

fn runtime(version: Version, suspended: bool) -> (Runtime, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let builder = Runtime::builder().version(version);
    let builder = if suspended { builder.suspended() } else { builder };
    (builder.start_in(folder.path()).unwrap(), folder)
}

fn environment(runtime: &Runtime) -> Vec<String> {
    let answer = send(runtime, &ProcessEnvironment.to_bytes().unwrap(), patience()).unwrap();
    Environment::<Vec<String>>::from_bytes(&answer.rest()).unwrap().0
}

#[test]
fn the_environment_is_the_one_that_was_set() {
    let (runtime, _folder) = runtime(Version::NET10, false);
    let set = |name: &str, value: Option<&str>| {
        ask(&runtime, &SetEnvironmentVariable { name: name.to_owned(), value: value.map(str::to_owned) })
    };
    assert_eq!(environment(&runtime), runtime.identity().environment);
    assert_eq!(set("NAME", Some("grüße 🌍")), Ok(HResult::OK));
    assert_eq!(set("EMPTY", Some("")), Ok(HResult::OK));
    assert_eq!(set("DOTNET_ROOT", None), Ok(HResult::OK));
    let expected = ["EMPTY=", "LANG=C.UTF-8", "NAME=grüße 🌍"];
    assert_eq!(environment(&runtime), expected);
    assert_eq!(runtime.state().environment, expected);
}

#[test]
fn perf_maps_hooks_profilers_and_dumps_are_in_the_state() {
    let (runtime, folder) = runtime(Version::NET9, false);
    let file = folder.path().join("library.so").to_str().unwrap().to_owned();
    std::fs::write(&file, "").unwrap();

    assert_eq!(runtime.state().perf_map, PerfMapType::DISABLED);
    ask(&runtime, &EnablePerfMap { kind: PerfMapType::JIT_DUMP }).unwrap();
    assert_eq!(runtime.state().perf_map, PerfMapType::JIT_DUMP);
    ask(&runtime, &DisablePerfMap).unwrap();
    assert_eq!(runtime.state().perf_map, PerfMapType::DISABLED);

    ask(&runtime, &ApplyStartupHook { path: file.clone() }).unwrap();
    assert_eq!(runtime.state().startup_hooks, [file.as_str()]);

    let profiler = uuid!("11111111-2222-3333-4444-555555555555");
    let attach: AttachProfiler =
        AttachProfiler { timeout_ms: 5, profiler, path: file.clone(), client_data: vec![9] };
    ask(&runtime, &attach).unwrap();
    assert_eq!(runtime.state().attached_profilers, [attach]);
    let startup = StartupProfiler { profiler, path: file };
    ask(&runtime, &startup).unwrap();
    assert_eq!(runtime.state().startup_profilers, [startup]);

    let core = folder.path().join("core");
    let path = core.to_str().unwrap().to_owned();
    ask(&runtime, &GenerateCoreDump3 { path, dump_type: DumpType::WITH_HEAP, ..Default::default() }).unwrap();
    let text = std::fs::read_to_string(&core).unwrap();
    let pid = std::process::id();
    assert_eq!(text, format!("core dump of a simulated runtime\nprocess {pid}\ntype WithHeap\nflags 0x0\n"));
    assert_eq!(runtime.state().dumps, [core]);
}

#[test]
fn a_dump_to_a_folder_is_refused() {
    let (runtime, folder) = runtime(Version::NET9, false);
    let path = folder.path().to_str().unwrap().to_owned();
    let error = ask(&runtime, &GenerateCoreDump3 { path, ..Default::default() }).unwrap_err();
    assert_eq!(error.hresult, HResult::FAIL);
    assert!(runtime.state().dumps.is_empty());
}

#[test]
fn a_suspended_runtime_reports_the_program_alone_until_it_is_resumed() {
    for (version, name) in [(Version::NET6, ""), (Version::NET8, "Simulated"), (Version::NET10, "Simulated")]
    {
        let (runtime, _folder) = runtime(version, true);
        assert!(runtime.state().suspended);
        let identity = Identity::new(1, version);
        let (program, _) = identity.command_line.split_once(' ').unwrap();
        assert_eq!(ask(&runtime, &ProcessInfo1).unwrap().command_line, program);
        let info = ask(&runtime, &ProcessInfo2).unwrap();
        assert_eq!((info.command_line.as_str(), info.managed_entrypoint_assembly.as_str()), (program, name));
        assert_eq!(ask(&runtime, &ResumeRuntime), Ok(HResult::OK));
        assert!(!runtime.state().suspended);
        let info = ask(&runtime, &ProcessInfo2).unwrap();
        assert_eq!(info.command_line, identity.command_line);
        assert_eq!(info.managed_entrypoint_assembly, "Simulated");
    }
}

#[test]
fn attach_profiler_is_refused_while_suspended_and_hooks_and_perf_maps_are_not() {
    let (runtime, folder) = runtime(Version::NET10, true);
    let attach: AttachProfiler =
        AttachProfiler { path: folder.path().to_str().unwrap().into(), ..AttachProfiler::default() };
    assert_eq!(ask(&runtime, &attach), Err(ServerError::new(HResult::NOT_YET_AVAILABLE)));
    // A missing hook is an error only when it is loaded.
    assert_eq!(ask(&runtime, &ApplyStartupHook { path: String::from("/no/such/hook.dll") }), Ok(HResult::OK));
    assert_eq!(ask(&runtime, &EnablePerfMap { kind: PerfMapType::ALL }), Ok(HResult::OK));
}

#[test]
fn net_9_that_is_suspended_dumps_nothing_and_dies_of_perf_maps() {
    let (runtime, folder) = runtime(Version::NET9, true);
    let core = folder.path().join("core");
    let path = core.to_str().unwrap().to_owned();
    assert_eq!(ask(&runtime, &GenerateCoreDump3 { path, ..Default::default() }), Ok(HResult::OK));
    assert!(!core.exists() && runtime.state().dumps.is_empty());
    let request = EnablePerfMap { kind: PerfMapType::ALL }.to_bytes().unwrap();
    assert!(send(&runtime, &request, patience()).is_err());
    assert!(runtime.has_died());
}

#[test]
fn open_sessions_have_their_requests() {
    let (runtime, _folder) = runtime(Version::NET9, false);
    assert!(ask(&runtime, &ProcessInfo3).is_ok());
    let (id, _answer) = crate::plain_client::start_session(&runtime);
    assert_eq!(runtime.sessions(), [(id, crate::plain_client::collect().into())]);
}
