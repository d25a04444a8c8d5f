use std::path::Path;

use dipc_doctor::{RuntimeEvidence, RuntimeKind, VersionSupport};

use super::Words;

pub(super) fn runtime(evidence: &RuntimeEvidence) -> Words {
    let with_space =
        |version: &Option<String>| version.as_ref().map_or_else(String::new, |it| format!(" {it}"));
    match evidence {
        RuntimeEvidence::Found { kind, version, path } => loaded(*kind, &with_space(version), path),
        RuntimeEvidence::SocketOnly { version } => Words::new(format!(
            "it has a diagnostic socket, but no known runtime{}",
            with_space(version)
        )),
        RuntimeEvidence::NotFound => Words::new("no .NET runtime is in it").because(
            "it is another kind of program, or one that starts .NET as a child (dotnet run, a script), or has not loaded \
             it yet",
        ),
        RuntimeEvidence::Unreadable { reason } => {
            Words::new(format!("whether it is .NET cannot be seen: {reason}"))
        }
        other => Words::unknown(other),
    }
}

fn loaded(kind: RuntimeKind, version: &str, path: &Path) -> Words {
    let path = path.display();
    match kind {
        RuntimeKind::CoreClr => Words::new(format!(".NET{version}, {path}")),
        RuntimeKind::SingleFile => Words::new(format!(".NET{version} as a single file, {path}")),
        RuntimeKind::NativeAot { has_port: true } => {
            Words::new(format!(".NET{version} compiled ahead of time (NativeAOT), {path}"))
        }
        RuntimeKind::NativeAot { has_port: false } => {
            Words::new(format!(".NET compiled ahead of time (NativeAOT) without a diagnostic port, {path}"))
                .because("such programs have the port only if they were built with EventSource support")
        }
        RuntimeKind::Mono => Words::new(format!("Mono, {path}")).because(
            "the Mono of .NET Framework programs has no diagnostic port; .NET Core 3.0 and later do",
        ),
        other => Words::new(format!("{other:?}{version}, {path}")),
    }
}

pub(super) fn version(version: &str, support: VersionSupport) -> Words {
    let old = || Words::new(format!(".NET {version} is an old runtime"));
    match support {
        VersionSupport::None => Words::new(format!(".NET Core {version}"))
            .because("diagnostic ports begin with .NET Core 3.0"),
        VersionSupport::SessionsAndDumps => old().because(
            "it can be recorded (trace) and dumped (dump); it cannot answer info, env, resume, set-env, profiler startup, \
             startup-hook and perfmap",
        ),
        VersionSupport::Partial => old().because(
            "it does not know startup-hook and perfmap, and cannot choose the keywords of a rundown",
        ),
        VersionSupport::Full => Words::new(format!(".NET {version} supports everything that dipc requests")),
        other => Words::new(format!(".NET {version}: {other:?}")),
    }
}

pub(super) fn musl(runtime_identifier: &str) -> Words {
    Words::new(format!("it is built for musl ({runtime_identifier}), as on Alpine Linux")).because(
        "profilers and other native libraries for it have to be built for musl, too; dipc works with either",
    )
}
