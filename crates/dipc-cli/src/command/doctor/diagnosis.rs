//! The cause of what is wrong with a process whose runtime does not answer.

use std::thread;
use std::time::Duration;

use clr_findings::{Diagnosis, Evidence, ProcessIdentity};
use dipc_collect::readings::BackgroundReader;
use dipc_doctor::{AnswerEvidence, Examination, TimeoutReason};

/// The time for which a process is read: its memory twice, and the kernel's account three times.
const READING_TIME: Duration = Duration::from_secs(1);

/// An examined process, with the first cause that its memory and the kernel's account show if its runtime
/// does not answer in time.
pub(super) struct Examined {
    pub(super) process: Examination,
    pub(super) cause: Option<String>,
}

impl Examined {
    pub(super) fn new(process: Examination) -> Self {
        let cause = is_silent(&process).then(|| cause(process.pid)).flatten();
        Self { process, cause }
    }

    /// The command that judges the process.
    pub(super) fn command(&self) -> String {
        format!("dipc why -p {}", self.process.pid)
    }
}

/// Returns true if the runtime does not answer and the system does not show why.
fn is_silent(process: &Examination) -> bool {
    process.findings.iter().any(|finding| match &finding.evidence {
        dipc_doctor::Evidence::Answer(AnswerEvidence::TimedOut { reason, .. }) => {
            *reason != TimeoutReason::State
        }
        _ => false,
    })
}

fn cause(pid: u32) -> Option<String> {
    let reader = BackgroundReader::start(pid, Some(READING_TIME)).ok()?;
    thread::sleep(READING_TIME);
    let readings = reader.finish();
    let evidence = Evidence::default().with_readings(&readings);
    let diagnosis = Diagnosis::new(ProcessIdentity::default().with_process_id(Some(pid.into())), &evidence);
    (!diagnosis.findings.is_empty()).then(|| diagnosis.first_line())
}
