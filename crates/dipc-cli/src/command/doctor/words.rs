//! The words for findings of `dipc-doctor`.

mod answer;
mod fix;
mod process;
mod runtime;
mod sampling;
mod settings;
mod socket;
#[cfg(test)]
mod tests;

use dipc_doctor::{Evidence, Finding, Status};

/// A finding in words.
#[derive(Debug)]
pub(super) struct Words {
    /// The facts.
    pub(super) seen: String,
    /// Their cause or their consequence.
    pub(super) cause: Option<String>,
    /// The action that fixes it.
    pub(super) fix: Option<String>,
}

/// Returns the words for a finding.
pub(super) fn describe(finding: &Finding) -> Words {
    let words = match &finding.evidence {
        Evidence::Process(evidence) => process::process(evidence),
        Evidence::User(evidence) => process::user(evidence),
        Evidence::Container { pid, inner_pid, has_own_files } => {
            process::container(*pid, *inner_pid, *has_own_files)
        }
        Evidence::Runtime(evidence) => runtime::runtime(evidence),
        Evidence::Version { version, support } => runtime::version(version, *support),
        Evidence::Musl { runtime_identifier } => runtime::musl(runtime_identifier),
        Evidence::Settings(evidence) => settings::settings(evidence),
        Evidence::Startup(evidence) => settings::startup(evidence),
        Evidence::Tmpdir(evidence) => settings::tmpdir(evidence),
        Evidence::Socket(evidence) => socket::socket(evidence),
        Evidence::StaleSockets(evidence) => socket::stale(evidence),
        Evidence::State(state) => {
            let words = Words::new(format!("it {state}"));
            if finding.status == Status::Problem { words.because("it cannot answer meanwhile") } else { words }
        }
        Evidence::Answer(evidence) => answer::answer(evidence),
        Evidence::Createdump(hazard) => Words::new(hazard.to_string()).because(
            "the runtime has createdump write its dumps, and a request for one can make it unreachable; dipc dump holds \
             it back",
        ),
        Evidence::Sampling(evidence) => sampling::sampling(evidence),
        Evidence::CoreDumps { pattern } => settings::core_dumps(pattern),
        Evidence::Memory { machine } => {
            let programs = match clr_dump::Machine(*machine) {
                clr_dump::Machine::AARCH64 => ".NET before 10 for arm64".to_owned(),
                machine => machine.to_string(),
            };
            Words::new(format!("the memory of programs of {programs} is not read yet")).because(
                "stack --exact, heap -p, dump analyze and dump strip refuse it, and samples of --cpu lack callers of \
                 methods without frame pointer; what the runtime answers works",
            )
        }
        other => Words::unknown(other),
    };
    Words { fix: finding.fix.as_ref().map(fix::fix), ..words }
}

impl Words {
    fn new(seen: impl Into<String>) -> Self {
        Self { seen: seen.into(), cause: None, fix: None }
    }

    /// Returns the words for evidence that this program does not know.
    fn unknown(evidence: &impl std::fmt::Debug) -> Self {
        Self::new(format!("{evidence:?}"))
    }

    fn because(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }
}
