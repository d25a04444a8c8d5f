//! The words for findings that no test can produce everywhere.

use std::path::PathBuf;

use dipc_doctor::{
    Evidence, Finding, Fix, MissingSocketReason, ProcessEvidence, RuntimeEvidence, RuntimeKind,
    SamplingEvidence, SamplingExtent, SamplingObstacle, SocketEvidence, Status, UserEvidence, VersionSupport,
};

use super::describe;

/// Asserts that all parts are in the words for a finding.
#[track_caller]
fn assert_names(finding: &Finding, parts: &[&str]) {
    let words = describe(finding);
    let words: Vec<_> = [Some(words.seen), words.cause, words.fix].into_iter().flatten().collect();
    let words = words.join(" | ");
    for part in parts {
        assert!(words.contains(part), "{part} is not in: {words}");
    }
}

fn problem(evidence: Evidence, fix: Option<Fix>) -> Finding {
    let finding = Finding::new(Status::Problem, evidence);
    match fix {
        Some(fix) => finding.with_fix(fix),
        None => finding,
    }
}

fn missing_socket(reason: MissingSocketReason, fix: Fix) -> Finding {
    problem(Evidence::Socket(SocketEvidence::Missing { folder: "/tmp".into(), reason }), Some(fix))
}

#[test]
fn a_missing_socket() {
    let unexplained = missing_socket(MissingSocketReason::Unknown, Fix::RetryOrCheckFolder);
    assert_names(&unexplained, &["/tmp", "try again"]);
}

#[test]
fn a_socket_in_another_folder() {
    let path = PathBuf::from("/run/x/dotnet-diagnostic-4711-99-socket");
    let reason = MissingSocketReason::Elsewhere { path: path.clone() };
    let fix = "use --endpoint /run/x/dotnet-diagnostic-4711-99-socket instead";
    let finding = missing_socket(reason, Fix::UseEndpoint { path, is_cut: false });
    assert_names(&finding, &["TMPDIR was changed", fix]);
}

#[test]
fn the_destination_of_core_dumps() {
    for (pattern, parts) in [
        ("core", &["files named core", "ulimit -c", "dipc crash-handler install"][..]),
        ("|/usr/lib/systemd/systemd-coredump %P %u", &["to /usr/lib/systemd/systemd-coredump"]),
    ] {
        let evidence = Evidence::CoreDumps { pattern: pattern.into() };
        assert_names(&Finding::new(Status::Ok, evidence), parts);
    }
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let pattern = "|/usr/local/bin/dipc crash-handler take %P %I %s %t".into();
        assert_names(&Finding::new(Status::Ok, Evidence::CoreDumps { pattern }), &["to dipc"]);
    }
}

#[test]
fn musl() {
    let evidence = Evidence::Musl { runtime_identifier: "linux-musl-x64".into() };
    assert_names(&Finding::new(Status::Ok, evidence), &["musl", "linux-musl-x64", "profilers"]);
}

#[test]
fn runtimes_of_every_age() {
    for (version, support, part) in [
        ("2", VersionSupport::None, "begin with .NET Core 3.0"),
        ("3.1.23", VersionSupport::SessionsAndDumps, "cannot answer info"),
        ("5.0.17", VersionSupport::Partial, "startup-hook"),
        ("7.0.1", VersionSupport::Partial, "perfmap"),
        ("8.0.0-rc.1", VersionSupport::Full, "8.0.0-rc.1"),
        ("10.0.5", VersionSupport::Full, "10.0.5"),
    ] {
        let evidence = Evidence::Version { version: version.into(), support };
        assert_names(&Finding::new(Status::Ok, evidence), &[part, version]);
    }
}

#[test]
fn mono() {
    let evidence =
        RuntimeEvidence::Found { kind: RuntimeKind::Mono, version: None, path: "/usr/bin/mono-sgen".into() };
    assert_names(&problem(Evidence::Runtime(evidence), Some(Fix::RunOnDotNet)), &["Mono", "run the program"]);
}

fn unreadable_by(own_uid: u32, fix: Fix) -> Finding {
    let unreadable = Some("/proc/4711/environ: no".into());
    let evidence = UserEvidence::Known { process_uid: 1000, own_uid, unreadable };
    problem(Evidence::User(evidence), Some(fix))
}

#[test]
fn a_process_that_is_unreadable_to_its_own_user() {
    assert_names(&unreadable_by(1000, Fix::RunAsRoot), &["setcap", "/proc/4711/environ", "sudo dipc"]);
}

#[test]
fn a_process_that_is_unreadable_to_root() {
    assert_names(&unreadable_by(0, Fix::GrantPtrace), &["SYS_PTRACE", "/proc/4711/environ"]);
}

#[test]
fn a_process_of_another_user() {
    let fix = Fix::RunAsUser { uid: Some(1000) };
    assert_names(&unreadable_by(7, fix), &["sudo -u '#1000'", "user 1000, dipc of user 7"]);
}

#[test]
fn a_pid_inside_containers() {
    let evidence = ProcessEvidence::InContainer { pid: 4711, outer_pids: vec![12, 34] };
    let finding = problem(Evidence::Process(evidence), Some(Fix::UsePid(vec![12, 34])));
    assert_names(&finding, &["4711 is the number inside a container", "12 or 34", "use -p 12 or -p 34"]);
}

#[test]
fn a_thread_of_the_kernel() {
    let evidence = ProcessEvidence::KernelThread { pid: 4711, name: "kworker".into() };
    assert_names(&problem(Evidence::Process(evidence), None), &["kworker", "thread of the kernel"]);
}

#[test]
fn a_process_that_the_system_does_not_show() {
    let evidence = ProcessEvidence::Unreadable { pid: 4711, reason: "why".into() };
    let finding = problem(Evidence::Process(evidence), Some(Fix::RunAsUser { uid: None }));
    assert_names(&finding, &["4711", "why", "as root"]);
}

fn sampling(extent: SamplingExtent, obstacle: SamplingObstacle) -> SamplingEvidence {
    let mut evidence = SamplingEvidence::new(extent);
    evidence.obstacle = Some(obstacle);
    evidence.process_uid = Some(1000);
    evidence
}

#[test]
fn words_for_kernel_samples_and_their_permissions() {
    let user_mode = sampling(SamplingExtent::UserMode, SamplingObstacle::Paranoid(2));
    let finding =
        Finding::new(Status::Ok, Evidence::Sampling(user_mode)).with_fix(Fix::PermitSampling { paranoid: 1 });
    assert_names(
        &finding,
        &["user mode only", "perf_event_paranoid is 2", "perf_event_paranoid=1", "cap_perfmon"],
    );
    let mut seccomp = sampling(SamplingExtent::Nothing, SamplingObstacle::Seccomp);
    seccomp.error = Some("Operation not permitted".into());
    let finding =
        Finding::new(Status::Warning, Evidence::Sampling(seccomp.clone())).with_fix(Fix::PermitInContainer);
    assert_names(
        &finding,
        &["Operation not permitted", "seccomp", "runtime sample itself", "--cap-add PERFMON"],
    );
    seccomp.has_runtime_sampler = false;
    assert_names(&Finding::new(Status::Warning, Evidence::Sampling(seccomp)), &["no other sampler", "/proc"]);
    let other = sampling(SamplingExtent::Nothing, SamplingObstacle::OtherUser);
    let finding = Finding::new(Status::Warning, Evidence::Sampling(other))
        .with_fix(Fix::SampleAsUser { uid: Some(1000) });
    assert_names(&finding, &["of user 1000", "sudo -u '#1000'"]);
}
