//! Checks of facts that cannot be produced everywhere: other C libraries, other runtimes, restrictions of
//! containers.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dipc_client::{Hazard, Startup};

use super::*;
use crate::facts::{Answer, Environment, ProcStatus, RuntimeImage, Sampling, UnixSocket};
use crate::{
    Check, MissingSocketReason, RuntimeEvidence, RuntimeKind, SamplingEvidence, SamplingExtent,
    SamplingObstacle, SettingsEvidence, SocketEvidence, TmpdirEvidence, TracingObstacle, UserEvidence,
    VersionSupport,
};

fn image(kind: RuntimeKind, version: &str) -> RuntimeImage {
    RuntimeImage { kind, path: "/app/runtime".into(), version: Some(version.into()), is_musl: false }
}

/// Returns a process of .NET 9 without a socket, of the user that this process runs as.
fn process() -> Process {
    Process {
        name: "app".into(),
        status: ProcStatus {
            name: "app".into(),
            process: 4711,
            uid: Some(1000),
            inner_pid: 4711,
            has_memory: true,
            is_zombie: false,
        },
        start_key: Some(99),
        state: None,
        environment: Ok(Environment::parse("")),
        image: Ok(Some(image(RuntimeKind::CoreClr, "9.0.1"))),
        has_own_files: Some(false),
        has_own_tmpdir: false,
        tmpdir_exists: Some(true),
        read_only: None,
        sockets: Vec::new(),
        stale_sockets: 0,
        startup: Startup::Running,
        createdump: None,
        endpoint: Err(Arc::new(dipc_transport::Error::NoEndpoint {
            pid: 4711,
            name: "app".into(),
            directory: "/tmp".into(),
        })),
        answer: Answer::NotAsked,
        sampling: None,
        tracing_obstacle: None,
        machine: None,
    }
}

/// Returns the same process with a socket, before it is asked. This test has made the socket.
fn found() -> Process {
    static FOUND: OnceLock<dipc_transport::Endpoint> = OnceLock::new();
    let endpoint = FOUND.get_or_init(|| {
        let pid = std::process::id();
        let name = dipc_transport::SocketName::new(pid, dipc_transport::start_key(pid).unwrap());
        let path = std::env::temp_dir().join(name.to_string());
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let endpoint = dipc_transport::find(pid);
        std::fs::remove_file(&path).unwrap();
        drop(listener);
        endpoint.unwrap()
    });
    Process { endpoint: Ok(endpoint.clone()), ..process() }
}

fn answered() -> Answer {
    Answer::Answered { info: None, after: Duration::from_millis(1) }
}

fn facts(presence: Presence) -> Facts {
    Facts { pid: 4711, own_uid: Some(1000), own_tmpdir: "/tmp".into(), presence }
}

fn judged(process: Process) -> Examination {
    judge(&facts(Presence::Here(Box::new(process))))
}

fn find(examination: &Examination, check: Check) -> Option<&Finding> {
    examination.findings.iter().find(|finding| finding.check == check)
}

#[track_caller]
fn get(examination: &Examination, check: Check, status: Status) -> &Finding {
    let finding = find(examination, check).unwrap();
    assert_eq!(finding.status, status, "{finding:?}");
    finding
}

/// Asserts that the socket is missing in `/tmp`, with this reason and fix.
#[track_caller]
fn assert_missing(process: Process, expected: &MissingSocketReason, fix: &Fix) {
    let examination = judged(process);
    assert!(!examination.reachable);
    let finding = get(&examination, Check::Socket, Status::Problem);
    match &finding.evidence {
        Evidence::Socket(SocketEvidence::Missing { folder, reason }) => {
            assert_eq!((folder, reason), (&PathBuf::from("/tmp"), expected));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(finding.fix.as_ref(), Some(fix));
}

#[test]
fn a_socket_that_is_missing_for_no_visible_reason() {
    assert_missing(process(), &MissingSocketReason::Unknown, &Fix::RetryOrCheckFolder);
}

#[test]
fn a_socket_in_another_folder() {
    let path = PathBuf::from("/run/x/dotnet-diagnostic-4711-99-socket");
    let elsewhere = UnixSocket { path: path.clone(), listens: true };
    let reason = MissingSocketReason::Elsewhere { path: path.clone() };
    let listening = Process { sockets: vec![elsewhere.clone()], ..process() };
    assert_missing(listening, &reason, &Fix::UseEndpoint { path, is_cut: false });
    let contained = Process { sockets: vec![elsewhere], has_own_files: Some(true), ..process() };
    let path = "/proc/4711/root/run/x/dotnet-diagnostic-4711-99-socket".into();
    assert_missing(contained, &reason, &Fix::UseEndpoint { path, is_cut: false });
}

/// The folder with the same path in a container is another one.
#[test]
fn the_folder_of_a_process_with_files_of_its_own_is_below_its_root() {
    let contained = judged(Process { has_own_files: Some(true), has_own_tmpdir: true, ..found() });
    let finding = get(&contained, Check::Tmpdir, Status::Warning);
    let folder = PathBuf::from("/proc/4711/root/tmp");
    match &finding.evidence {
        Evidence::Tmpdir(TmpdirEvidence::Different { process, own }) => {
            assert_eq!((process, own), (&folder, &PathBuf::from("/tmp")));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(finding.fix, Some(Fix::SetTmpdirForTools(folder)));
    // A namespace of its own with this host's folder.
    let shared = judged(Process { has_own_files: Some(true), ..found() });
    assert_eq!(get(&shared, Check::Tmpdir, Status::Ok).fix, None);
}

#[test]
fn settings_unknown_to_the_version_are_not_a_reason() {
    let of = |version: &str, variable: &str| Process {
        environment: Ok(Environment::parse(&format!("{variable}=0"))),
        image: Ok(Some(image(RuntimeKind::CoreClr, version))),
        ..process()
    };
    let ipc = "DOTNET_EnableDiagnostics_IPC";
    for version in ["6.0.36", "7.0.20"] {
        let examination = judged(of(version, ipc));
        let finding = get(&examination, Check::Settings, Status::Ok);
        assert!(
            matches!(&finding.evidence, Evidence::Settings(SettingsEvidence::Ignored { setting }) if *setting == format!("{ipc}=0")),
            "{finding:?}"
        );
        assert_missing(of(version, ipc), &MissingSocketReason::Unknown, &Fix::RetryOrCheckFolder);
    }
    for (version, variable) in [("6.0.36", "DOTNET_EnableDiagnostics"), ("8.0.1", ipc)] {
        let reason = MissingSocketReason::Disabled { setting: format!("{variable}=0") };
        get(&judged(of(version, variable)), Check::Settings, Status::Problem);
        assert_missing(of(version, variable), &reason, &Fix::SeeCheck(Check::Settings));
        // The process has its socket, and is stopped.
        let stopped = Process { endpoint: found().endpoint, ..of(version, variable) };
        get(&judged(stopped), Check::Settings, Status::Ok);
    }
}

#[test]
fn neither_connections_nor_stale_sockets_are_taken_for_the_socket() {
    for (path, listens) in
        [("/run/x/dotnet-diagnostic-4711-99-socket", false), ("/x/dotnet-diagnostic-4711-98-socket", true)]
    {
        let other = Process { sockets: vec![UnixSocket { path: path.into(), listens }], ..process() };
        assert_missing(other, &MissingSocketReason::Unknown, &Fix::RetryOrCheckFolder);
    }
}

#[test]
fn a_socket_that_was_removed_perhaps_by_a_dump() {
    let path = PathBuf::from("/tmp/dotnet-diagnostic-4711-99-socket");
    let sockets = vec![UnixSocket { path: path.clone(), listens: true }];
    let hazard = Hazard::NoCreateDump { path: "/x/createdump".into(), problem: "it does not exist" };
    for createdump in [None, Some(hazard)] {
        let reason = MissingSocketReason::Removed { path: path.clone(), may_be_dump: createdump.is_some() };
        let removed = Process { sockets: sockets.clone(), createdump, ..process() };
        assert_missing(removed, &reason, &Fix::RestartAndKeepFolder);
    }
}

#[test]
fn a_dump_of_a_single_file_does_harm_in_some_versions() {
    for (kind, version, expected) in [
        (RuntimeKind::SingleFile, "8.0.28", true),
        (RuntimeKind::SingleFile, "10.0.5", false),
        (RuntimeKind::CoreClr, "8.0.28", false),
    ] {
        let examination = judged(Process { image: Ok(Some(image(kind, version))), ..process() });
        let finding = find(&examination, Check::Createdump);
        assert_eq!(finding.is_some(), expected, "{kind:?} {version}");
        if let Some(finding) = finding {
            assert_eq!(finding.status, Status::Warning);
            assert!(matches!(&finding.evidence, Evidence::Createdump(Hazard::DumpInSingleFile { .. })));
        }
    }
}

#[test]
fn musl_is_reported_and_no_problem() {
    let musl = RuntimeImage { is_musl: true, ..image(RuntimeKind::CoreClr, "9.0.1") };
    let examination = judged(Process { image: Ok(Some(musl)), answer: answered(), ..process() });
    match &get(&examination, Check::Platform, Status::Ok).evidence {
        Evidence::Musl { runtime_identifier } => assert_eq!(runtime_identifier, "linux-musl"),
        other => panic!("{other:?}"),
    }
    assert!(find(&judged(process()), Check::Platform).is_none());
}

#[test]
fn versions_and_the_commands_that_they_know() {
    for (version, status, expected) in [
        ("2", Status::Problem, VersionSupport::None),
        ("3.1.23", Status::Warning, VersionSupport::SessionsAndDumps),
        ("5.0.17", Status::Warning, VersionSupport::Partial),
        ("7.0.1", Status::Warning, VersionSupport::Partial),
        ("8.0.0-rc.1", Status::Ok, VersionSupport::Full),
        ("10.0.5", Status::Ok, VersionSupport::Full),
    ] {
        let examination =
            judged(Process { image: Ok(Some(image(RuntimeKind::CoreClr, version))), ..process() });
        match &get(&examination, Check::Version, status).evidence {
            Evidence::Version { version: found, support } => {
                assert_eq!((found.as_str(), *support), (version, expected));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(examination.runtime.as_deref(), Some(version));
    }
}

#[test]
fn mono_has_no_port() {
    let mono = RuntimeImage { version: None, ..image(RuntimeKind::Mono, "") };
    let examination = judged(Process { image: Ok(Some(mono)), ..process() });
    let finding = get(&examination, Check::Runtime, Status::Problem);
    assert!(
        matches!(
            finding.evidence,
            Evidence::Runtime(RuntimeEvidence::Found { kind: RuntimeKind::Mono, version: None, .. })
        ),
        "{finding:?}"
    );
    assert_eq!(finding.fix, Some(Fix::RunOnDotNet));
    assert!(find(&examination, Check::Socket).is_none(), "one reason is enough");
}

fn unreadable() -> Process {
    Process { environment: Err("/proc/4711/environ: no".into()), ..process() }
}

#[test]
fn an_unreadable_process_by_the_user_that_examines_it() {
    for (uid, fix) in [(1000, Fix::RunAsRoot), (0, Fix::GrantPtrace), (7, Fix::RunAsUser { uid: Some(1000) })]
    {
        let presence = Presence::Here(Box::new(unreadable()));
        let examination = judge(&Facts { own_uid: Some(uid), ..facts(presence) });
        let finding = get(&examination, Check::User, Status::Problem);
        match &finding.evidence {
            Evidence::User(UserEvidence::Known { process_uid: 1000, own_uid, unreadable }) => {
                assert_eq!((*own_uid, unreadable.as_deref()), (uid, Some("/proc/4711/environ: no")));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(finding.fix, Some(fix));
    }
}

#[test]
fn a_missing_right_other_than_the_users_is_the_fix() {
    let missing = TracingObstacle::MissingCapabilities(vec!["NET_RAW"]);
    for (obstacle, fix) in [
        (TracingObstacle::OtherUser { uid: 1000, own_uid: 0 }, Fix::GrantPtrace),
        (TracingObstacle::Unknown, Fix::GrantPtrace),
        (missing.clone(), Fix::PermitTracing(missing)),
    ] {
        let process = Process { tracing_obstacle: Some(obstacle), ..unreadable() };
        let examination = judge(&Facts { own_uid: Some(0), ..facts(Presence::Here(Box::new(process))) });
        assert_eq!(get(&examination, Check::User, Status::Problem).fix, Some(fix));
    }
}

#[test]
fn an_unreadable_process_that_answers_is_not_a_problem() {
    let reached = judged(Process { answer: answered(), ..unreadable() });
    let user = get(&reached, Check::User, Status::Ok);
    assert!(
        matches!(&user.evidence, Evidence::User(UserEvidence::Known { unreadable: Some(it), .. }) if it == "/proc/4711/environ: no"),
        "{user:?}"
    );
    assert_eq!(user.fix, None);
    assert!(reached.reachable);
    let settings = get(&reached, Check::Settings, Status::Unknown);
    assert!(matches!(settings.evidence, Evidence::Settings(SettingsEvidence::Unreadable)), "{settings:?}");
}

#[track_caller]
fn absent(presence: Presence) -> Finding {
    let examination = judge(&facts(presence));
    assert!(!examination.reachable);
    assert_eq!(examination.findings.len(), 1);
    get(&examination, Check::Process, Status::Problem).clone()
}

#[track_caller]
fn assert_process(finding: &Finding, expected: &ProcessEvidence, fix: Option<&Fix>) {
    match &finding.evidence {
        Evidence::Process(evidence) => assert_eq!(evidence, expected),
        other => panic!("{other:?}"),
    }
    assert_eq!(finding.fix.as_ref(), fix);
}

#[test]
fn a_pid_inside_containers() {
    let finding = absent(Presence::Absent { inside: vec![12, 34] });
    let evidence = ProcessEvidence::InContainer { pid: 4711, outer_pids: vec![12, 34] };
    assert_process(&finding, &evidence, Some(&Fix::UsePid(vec![12, 34])));
}

#[test]
fn a_thread_of_the_kernel() {
    let finding = absent(Presence::NoMemory { name: "kworker".into(), zombie: false });
    assert_process(&finding, &ProcessEvidence::KernelThread { pid: 4711, name: "kworker".into() }, None);
}

#[test]
fn a_process_that_the_system_does_not_show() {
    let finding = absent(Presence::Hidden("why".into()));
    let evidence = ProcessEvidence::Unreadable { pid: 4711, reason: "why".into() };
    assert_process(&finding, &evidence, Some(&Fix::RunAsUser { uid: None }));
    // Root is not advised to become root.
    let hidden = Facts { own_uid: Some(0), ..facts(Presence::Hidden("why".into())) };
    let examination = judge(&hidden);
    assert_process(&examination.findings[0], &evidence, Some(&Fix::GrantPtrace));
}

/// Returns the finding about the kernel's samples, given its answers to events with the kernel and in user
/// mode only.
fn sampled(obstacle: &SamplingObstacle, kernel: bool, user: bool) -> Examination {
    let answer = |is_permitted: bool| {
        if is_permitted { Ok(()) } else { Err(("no".to_owned(), obstacle.clone())) }
    };
    let sampling = Sampling {
        kernel: answer(kernel),
        user: answer(user),
        processors: answer(false),
        paranoid: Some(2),
        has_capability: false,
        has_kernel_names: false,
    };
    judged(Process { sampling: Some(sampling), ..process() })
}

#[track_caller]
fn sampling_evidence(finding: &Finding) -> &SamplingEvidence {
    match &finding.evidence {
        Evidence::Sampling(evidence) => evidence,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_least_that_permits_more_samples_depends_on_the_obstacle() {
    let paranoid = SamplingObstacle::Paranoid(2);
    let all = sampled(&paranoid, true, true);
    let finding = get(&all, Check::Sampling, Status::Ok);
    assert_eq!(sampling_evidence(finding).extent, SamplingExtent::Everything);
    assert_eq!((finding.fix.as_ref(), sampling_evidence(finding).obstacle.as_ref()), (None, None));
    for (obstacle, user, status, fix) in [
        (paranoid, true, Status::Ok, Some(Fix::PermitSampling { paranoid: 1 })),
        (SamplingObstacle::Paranoid(3), false, Status::Warning, Some(Fix::LowerParanoid { paranoid: 2 })),
        (SamplingObstacle::Paranoid(2), false, Status::Warning, Some(Fix::PermitSampling { paranoid: 2 })),
        (SamplingObstacle::OtherUser, false, Status::Warning, Some(Fix::SampleAsUser { uid: Some(1000) })),
        (SamplingObstacle::Seccomp, false, Status::Warning, Some(Fix::PermitInContainer)),
        (SamplingObstacle::NotBuilt, false, Status::Warning, None),
    ] {
        let examination = sampled(&obstacle, false, user);
        let finding = get(&examination, Check::Sampling, status);
        assert_eq!(finding.fix, fix, "{obstacle:?}");
        let evidence = sampling_evidence(finding);
        assert_eq!(evidence.obstacle.as_ref(), Some(&obstacle));
        assert_eq!(evidence.extent == SamplingExtent::UserMode, user, "{obstacle:?}");
        assert!(evidence.has_runtime_sampler);
    }
    assert!(find(&judged(process()), Check::Sampling).is_none());
}

#[test]
fn reports_processors_without_memory_support() {
    let of = |machine| judged(Process { machine, ..process() });
    assert!(find(&of(None), Check::Memory).is_none() && find(&of(Some(62)), Check::Memory).is_none());
    let examination = of(Some(243));
    let finding = get(&examination, Check::Memory, Status::Warning);
    assert!(matches!(finding.evidence, Evidence::Memory { machine: 243 }));
    let of_arm64 = |kind, version| {
        let image = Ok(Some(image(kind, version)));
        find(&judged(Process { machine: Some(183), image, ..process() }), Check::Memory).is_some()
    };
    let native = RuntimeKind::NativeAot { has_port: true };
    assert!(of_arm64(RuntimeKind::CoreClr, "9.0.1"));
    assert!(!of_arm64(RuntimeKind::CoreClr, "10.0.9") && !of_arm64(native, "9.0.20"));
}
