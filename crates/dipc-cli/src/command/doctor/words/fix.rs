use dipc_doctor::Fix;

use crate::process::tracing_rights;
use crate::render::shell;

/// Returns the words for an action.
pub(super) fn fix(fix: &Fix) -> String {
    match fix {
        Fix::UsePid(pids) => {
            let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
            format!("use -p {}", pids.join(" or -p "))
        }
        Fix::RunAsUser { uid: Some(uid) } => {
            format!("run dipc as that user (sudo -u '#{uid}' dipc …), or as root")
        }
        Fix::UnsetVariable(name) => format!("start it again without {name}"),
        Fix::Resume { pid, is_suspended: true } => {
            format!("dipc resume -p {pid}, or dipc trace, which resumes it when the session runs")
        }
        Fix::Resume { pid, is_suspended: false } => format!("dipc resume -p {pid} does no harm"),
        Fix::ListenOn { pid, addresses } => {
            let first = addresses.first().map(String::as_str).unwrap_or_default();
            format!(
                "dipc resume -p {pid} listens there and resumes it, dipc trace --diagnostic-port {} also records it; or start the \
                 program without the port, or with the tag nosuspend",
                shell::word(first)
            )
        }
        Fix::SetTmpdirForTools(path) => {
            format!("for those tools: TMPDIR={} dotnet-trace …", shell::path(path))
        }
        Fix::SeeCheck(check) => format!("see {check}"),
        Fix::UseEndpoint { path, is_cut } => {
            let endpoint = format!("use --endpoint {} instead of the pid", shell::path(path));
            if *is_cut {
                format!("{endpoint} (dipc info shows its process), or start it with a shorter TMPDIR")
            } else {
                endpoint
            }
        }
        Fix::MakeWritable(path) => format!(
            "mount something writable at {}, or set TMPDIR to a writable folder, and start the process again",
            path.display()
        ),
        Fix::Continue { pid } => format!("continue it: kill -CONT {pid}"),
        Fix::PermitSampling { paranoid } => format!(
            "setcap cap_perfmon+ep on the file of dipc, or sysctl kernel.perf_event_paranoid={paranoid}, or run dipc as root"
        ),
        Fix::PermitTracing(obstacle) => tracing_rights::advice(obstacle),
        Fix::LowerParanoid { paranoid } => format!(
            "sysctl kernel.perf_event_paranoid={paranoid}, or run dipc as root on the host, or its container with --cap-add \
             SYS_ADMIN: CAP_PERFMON is not enough"
        ),
        Fix::SampleAsUser { uid: Some(uid) } => {
            format!(
                "run dipc as that user (sudo -u '#{uid}' dipc …), as root, or with CAP_PERFMON and CAP_SYS_PTRACE"
            )
        }
        Fix::Advice(text) => (*text).to_owned(),
        other => fixed(other).map_or_else(|| format!("{other:?}"), ToOwned::to_owned),
    }
}

/// Returns the words for an action without parameters.
fn fixed(fix: &Fix) -> Option<&'static str> {
    Some(match fix {
        Fix::RunAsUser { uid: None } => "run dipc as root, or as the user of the process",
        Fix::RunAsRoot => "run dipc as root (sudo dipc …)",
        Fix::GrantPtrace => {
            "run dipc on the host, or with the capability SYS_PTRACE (--cap-add SYS_PTRACE), or name the socket \
             (--endpoint)"
        }
        Fix::ListProcesses => "dipc doctor without -p lists the .NET processes",
        Fix::SharePidNamespace => {
            "dipc doctor without -p lists what is visible; a sidecar has to share the pid namespace, or be given the \
             socket (--endpoint)"
        }
        Fix::EnableEventSource => "build it with <EventSourceSupport>true</EventSourceSupport>",
        Fix::RunOnDotNet => "run the program on .NET",
        Fix::UpgradeRuntime => "run the program on a newer runtime",
        Fix::ResumeFromPort => "resume it from there",
        Fix::SetTmpdir => "set TMPDIR to the folder of the processes",
        Fix::RemoveFile { is_foreign: true } => {
            "remove the file as its owner or as root, and start the process again"
        }
        Fix::RemoveFile { is_foreign: false } => "remove the file, and start the process again",
        Fix::Restart => "start the process again",
        Fix::RestartAndKeepFolder => {
            "it cannot be made again: start the process again, and keep its folder from being cleared"
        }
        Fix::ShortenTmpdir => "start it with a shorter TMPDIR",
        Fix::MakeTmpdir => "make the folder, or set TMPDIR to one that exists, and start the process again",
        Fix::RetryOrCheckFolder => "try again; else look at the folder's rights, and start the process again",
        Fix::RemoveStaleSockets => "they can be removed",
        Fix::EndOtherListener => "find out what that process is; end it, and start this one again",
        Fix::EndOtherClient => {
            "end the other client (another dipc, dotnet-trace, dotnet-monitor), or wait for it"
        }
        Fix::SampleAsUser { uid: None } => {
            "run dipc as the user of the process, as root, or with CAP_PERFMON and CAP_SYS_PTRACE"
        }
        Fix::PermitInContainer => {
            "run dipc on the host, or its container with --cap-add PERFMON (SYS_ADMIN if kernel.perf_event_paranoid is above \
             2)"
        }
        Fix::RetryLonger => "try again with a longer --timeout",
        _ => return None,
    })
}
