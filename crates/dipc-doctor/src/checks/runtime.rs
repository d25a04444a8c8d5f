//! Which .NET it is, and what that means.

use crate::facts::{ImageKind, Process};
use crate::finding::{Check, Finding};

pub(super) fn runtime(process: &Process) -> Option<Finding> {
    let version = process.version().map_or_else(String::new, |version| format!(" {version}"));
    let image = match &process.image {
        Ok(Some(image)) => image,
        Ok(None) if process.endpoint.is_ok() => {
            return Some(Finding::ok(
                Check::Runtime,
                format!(
                    "it has a diagnostic socket, and nothing in it that is known as a \
                    runtime{version}"
                ),
            ));
        }
        Ok(None) => {
            return Some(
                Finding::problem(Check::Runtime, "no .NET runtime is in it")
                    .because(
                        "it is another kind of program, or one that starts .NET as a child \
                        (dotnet run, a script), or has not loaded it yet",
                    )
                    .fix("dipc doctor without -p lists the .NET processes"),
            );
        }
        Err(why) => {
            return Some(Finding::unknown(
                Check::Runtime,
                format!("whether it is .NET cannot be seen: {why}"),
            ));
        }
    };
    let path = image.path.display();
    let ok = |seen: String| Some(Finding::ok(Check::Runtime, seen));
    match image.kind {
        ImageKind::CoreClr => ok(format!(".NET{version}, {path}")),
        ImageKind::SingleFile => ok(format!(".NET{version} as a single file, {path}")),
        ImageKind::NativeAot { has_port: true } => {
            ok(format!(".NET{version} compiled ahead of time (NativeAOT), {path}"))
        }
        ImageKind::NativeAot { has_port: false } => Some(super::unless_reached(
            process,
            Finding::problem(
                Check::Runtime,
                format!(".NET compiled ahead of time (NativeAOT) without a diagnostic port, {path}"),
            )
            .because("such programs have the port only if they were built with EventSource support")
            .fix("build it with <EventSourceSupport>true</EventSourceSupport>"),
        )),
        ImageKind::Mono => Some(super::unless_reached(
            process,
            Finding::problem(Check::Runtime, format!("Mono, {path}"))
                .because(
                    "the Mono of .NET Framework programs has no diagnostic port; .NET Core 3.0 and \
                        later do",
                )
                .fix("run the program on .NET"),
        )),
    }
}

/// What is known of a runtime's age: its version, or that it knew none of the process commands.
pub(super) fn version(process: &Process) -> Option<Finding> {
    let version = process.version()?;
    let major: u32 = version.split(['.', '-', '+']).next()?.parse().ok()?;
    let old = |lacks: &str| {
        Finding::warning(Check::Version, format!(".NET {version} is an old runtime"))
            .because(lacks.to_owned())
    };
    Some(match major {
        0..3 => super::unless_reached(
            process,
            Finding::problem(Check::Version, format!(".NET Core {version}"))
                .because("diagnostic ports begin with .NET Core 3.0")
                .fix("run the program on a newer runtime"),
        ),
        3 => old("it can be recorded (trace) and dumped (dump); it cannot answer info, env, resume, \
                set-env, profiler startup, startup-hook and perfmap"),
        4..8 => old("it does not know startup-hook and perfmap, and cannot choose the keywords of a \
            rundown"),
        _ => Finding::ok(Check::Version, format!(".NET {version} knows what dipc asks for")),
    })
}

pub(super) fn platform(process: &Process) -> Option<Finding> {
    let identifier = process.info().and_then(|info| info.runtime_identifier.clone());
    let says_musl = identifier.as_ref().is_some_and(|it| it.contains("musl"));
    if !says_musl && !process.image().is_some_and(|image| image.musl) {
        return None;
    }
    let name = identifier.unwrap_or_else(|| "linux-musl".to_owned());
    Some(Finding::ok(Check::Platform, format!("it is built for musl ({name}), as on Alpine Linux")).because(
        "profilers and other native libraries for it have to be built for musl, too; \
                dipc itself does not mind",
    ))
}

pub(super) fn createdump(process: &Process) -> Option<Finding> {
    let danger = process.createdump.as_ref()?;
    let finding = Finding::warning(Check::Createdump, danger.to_string()).because(
        "the runtime has createdump write its dumps, and a request without it can make it \
            unreachable; dipc dump holds it back",
    );
    Some(match danger.help() {
        Some(help) => finding.fix(help),
        None => finding,
    })
}
