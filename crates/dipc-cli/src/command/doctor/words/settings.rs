use dipc_doctor::{SettingsEvidence, StartupEvidence, SuspendReason, TmpdirEvidence};

use super::Words;

pub(super) fn settings(evidence: &SettingsEvidence) -> Words {
    match evidence {
        SettingsEvidence::Unreadable => Words::new("its environment cannot be read"),
        SettingsEvidence::Enabled => Words::new("nothing in its environment switches diagnostics off"),
        SettingsEvidence::Disabled { setting } => Words::new(format!("it was started with {setting}"))
            .because("this switches the diagnostic port off, and is read at the start only"),
        SettingsEvidence::Ignored { setting } => {
            Words::new(format!("{setting} is set, which this runtime does not follow"))
        }
        other => Words::unknown(other),
    }
}

pub(super) fn startup(evidence: &StartupEvidence) -> Words {
    match &evidence.reason {
        SuspendReason::Setting { setting } if evidence.is_suspended => {
            Words::new("its program has not begun: the runtime waits to be resumed")
                .because(format!("it was started with {setting}"))
        }
        SuspendReason::Setting { setting } => Words::new(format!(
            "it was started with {setting}; whether it still waits to be resumed cannot be seen"
        )),
        SuspendReason::Ports { unserved, served } if evidence.is_suspended => {
            let words = Words::new(
                "its program has not begun: the runtime waits to be resumed on its diagnostic ports",
            );
            words.because(if unserved.is_empty() {
                format!("the listener on {} has not resumed it", served.join(" and "))
            } else {
                no_listener(unserved)
            })
        }
        SuspendReason::Ports { unserved, .. } => Words::new(format!(
            "{}; whether it still waits for somebody cannot be seen",
            no_listener(unserved)
        )),
        other => Words::unknown(other),
    }
}

fn no_listener(ports: &[String]) -> String {
    format!("no process listens on {} (DOTNET_DiagnosticPorts)", ports.join(" and "))
}

pub(super) fn tmpdir(evidence: &TmpdirEvidence) -> Words {
    match evidence {
        TmpdirEvidence::Unreadable => Words::new("its TMPDIR cannot be seen; /tmp is assumed"),
        TmpdirEvidence::Same { path } => Words::new(format!("{} for it and for dipc", path.display())),
        TmpdirEvidence::Different { process, own } => {
            Words::new(format!("{} for it, {} for dipc", process.display(), own.display()))
                .because("dipc looks in each process's own; dotnet-trace and the like look only in theirs")
        }
        TmpdirEvidence::Own { path, is_folder: true } => {
            Words::new(format!("{} for dipc; each process is looked for in its own", path.display()))
        }
        TmpdirEvidence::Own { path, is_folder: false } => {
            Words::new(format!("{} for dipc, which is not a folder", path.display()))
                .because("dipc looks for each process in that process's own; other tools will find none")
        }
        other => Words::unknown(other),
    }
}

/// The destination of the kernel's core dumps.
pub(super) fn core_dumps(pattern: &str) -> Words {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    if dipc_collect::crash_handler::KernelSettings::is_ours(pattern) {
        return Words::new(
            "the kernel gives core dumps to dipc, which keeps them; dipc crash-handler lists them",
        );
    }
    match pattern.strip_prefix('|') {
        Some(command) => {
            let program = command.split_whitespace().next().unwrap_or_default();
            Words::new(format!("the kernel gives core dumps to {program}"))
        }
        None => Words::new(format!("the kernel writes core dumps into files named {pattern}")).because(
            "of processes whose ulimit -c permits it; dipc crash-handler install keeps those of all",
        ),
    }
}
