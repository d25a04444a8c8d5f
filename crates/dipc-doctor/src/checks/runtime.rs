//! The kind and the version of the runtime.

use dipc_client::Hazard;

use crate::facts::Process;
use crate::{Evidence, Finding, Fix, RuntimeEvidence, RuntimeKind, VersionSupport};

/// Checks that the process has a runtime that can be diagnosed.
pub(super) fn runtime(process: &Process) -> Finding {
    let version = process.version();
    let image = match &process.image {
        Ok(Some(image)) => image,
        Ok(None) if process.endpoint.is_ok() => {
            return Finding::ok(Evidence::Runtime(RuntimeEvidence::SocketOnly { version }));
        }
        Ok(None) => {
            let evidence = Evidence::Runtime(RuntimeEvidence::NotFound);
            return Finding::problem(evidence).with_fix(Fix::ListProcesses);
        }
        Err(reason) => {
            let evidence = RuntimeEvidence::Unreadable { reason: reason.clone() };
            return Finding::unknown(Evidence::Runtime(evidence));
        }
    };
    let fix = match image.kind {
        RuntimeKind::NativeAot { has_port: false } => Some(Fix::EnableEventSource),
        RuntimeKind::Mono => Some(Fix::RunOnDotNet),
        RuntimeKind::CoreClr | RuntimeKind::SingleFile | RuntimeKind::NativeAot { has_port: true } => None,
    };
    let evidence = RuntimeEvidence::Found { kind: image.kind, version, path: image.path.clone() };
    let evidence = Evidence::Runtime(evidence);
    match fix {
        Some(fix) => super::unless_reached(process, Finding::problem(evidence).with_fix(fix)),
        None => Finding::ok(evidence),
    }
}

/// Checks the version; `None` if it is not known.
pub(super) fn version(process: &Process) -> Option<Finding> {
    let version = process.version()?;
    let major = process.major_version()?;
    let evidence = |support| Evidence::Version { version, support };
    Some(match major {
        0..3 => {
            let problem = Finding::problem(evidence(VersionSupport::None)).with_fix(Fix::UpgradeRuntime);
            super::unless_reached(process, problem)
        }
        3 => Finding::warning(evidence(VersionSupport::SessionsAndDumps)),
        4..8 => Finding::warning(evidence(VersionSupport::Partial)),
        _ => Finding::ok(evidence(VersionSupport::Full)),
    })
}

/// Reports a runtime for musl; `None` for any other.
pub(super) fn platform(process: &Process) -> Option<Finding> {
    let reported = process.info().and_then(|info| info.runtime_identifier.clone());
    let reports_musl = reported.as_ref().is_some_and(|identifier| identifier.contains("musl"));
    if !reports_musl && !process.image().is_some_and(|image| image.is_musl) {
        return None;
    }
    let runtime_identifier = reported.unwrap_or_else(|| "linux-musl".to_owned());
    Some(Finding::ok(Evidence::Musl { runtime_identifier }))
}

/// Reports a known hazard of writing dumps.
pub(super) fn createdump(process: &Process) -> Option<Finding> {
    let hazard = dump_hazard(process)?;
    let help = hazard.help();
    let finding = Finding::warning(Evidence::Createdump(hazard));
    Some(match help {
        Some(help) => finding.with_fix(Fix::Advice(help)),
        None => finding,
    })
}

/// Returns the harm that a dump does to the process; `None` if none is known.
pub(super) fn dump_hazard(process: &Process) -> Option<Hazard> {
    let is_single_file = process.image().is_some_and(|image| image.kind == RuntimeKind::SingleFile);
    let of_single_file = || Hazard::of_dump_in_single_file(&process.version().filter(|_| is_single_file)?);
    process.createdump.clone().or_else(of_single_file)
}

/// The processor for which the memory of all programs is read (`EM_X86_64`).
const X86_64: u16 = 62;
/// The processor for which the memory of NativeAOT programs and of .NET 10 is read (`EM_AARCH64`).
const AARCH64: u16 = 183;

/// Reports a processor for which program memory is not read.
pub(super) fn memory(process: &Process) -> Option<Finding> {
    let is_native = process.image().is_some_and(|image| matches!(image.kind, RuntimeKind::NativeAot { .. }));
    let is_read = |machine: u16| match machine {
        X86_64 => true,
        AARCH64 => is_native || process.major_version().is_none_or(|major| major >= 10),
        _ => false,
    };
    let machine = process.machine.filter(|machine| !is_read(*machine))?;
    Some(Finding::warning(Evidence::Memory { machine }))
}
