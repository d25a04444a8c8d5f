//! A diagnosis in words.

use clr_events::escape_controls;

use crate::finding::{Confidence, Details, Finding};
use crate::result::Diagnosis;
use crate::running::RunningMethod;
use crate::waiting::WaitingPlace;

/// Maximum number of findings in words.
const MAX_FINDINGS: usize = 4;

impl Details {
    /// The command of `dipc` that shows more of a running process.
    pub fn command(self, pid: u32) -> String {
        match self {
            Self::Locks | Self::Contention => format!("dipc locks -p {pid}"),
            Self::Awaits => format!("dipc async -p {pid}"),
            Self::Stacks | Self::ThreadPool => format!("dipc stack -p {pid}"),
            Self::Heap => format!("dipc heap -p {pid}"),
            Self::Machine => format!("dipc info -p {pid}"),
            Self::Requests => format!("dipc profile -p {pid} --duration 10s"),
            _ => format!("dipc top -p {pid}"),
        }
    }
}

impl Finding {
    /// The cause as a sentence, with its certainty. Control characters are escaped.
    pub fn sentence(&self) -> String {
        match self.confidence {
            Confidence::Likely => format!("likely: {}", self.cause),
            Confidence::Certain => self.cause.clone(),
        }
    }
}

impl Diagnosis {
    /// The first cause in a line, or what the process does.
    pub fn first_line(&self) -> String {
        self.findings.first().map_or_else(
            || {
                let (label, activity) = self.without_cause();
                format!("{label}: {activity}")
            },
            Finding::sentence,
        )
    }

    /// Returns the diagnosis in words: labels, which are empty where a row belongs to the one above, and
    /// sentences. The first cause has its evidence; further ones than the fourth are counted. `process` is
    /// the process in words, and `command` has the command that shows more of a finding. Control characters
    /// are escaped.
    pub fn rows(
        &self,
        process: &str,
        command: impl Fn(&Finding) -> Option<String>,
    ) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        for (index, finding) in self.findings.iter().take(MAX_FINDINGS).enumerate() {
            rows.push((if index == 0 { "Cause" } else { "Also" }, finding.sentence()));
            let evidence = finding.evidence.iter().filter(|_| index == 0).cloned();
            rows.extend(evidence.chain(command(finding)).map(|text| ("", text)));
        }
        let left = self.findings.len().saturating_sub(MAX_FINDINGS);
        if left > 0 {
            rows.push(("Also", format!("{left} more, which the JSON has")));
        }
        if self.findings.is_empty() {
            rows.push(self.without_cause());
            rows.extend(RunningMethod::in_words(&self.running).map(|methods| ("Running", methods)));
            rows.extend(WaitingPlace::in_words(&self.waiting).map(|places| ("Waiting", places)));
        }
        rows.push(("Process", escape_controls(process).into_owned()));
        if !self.looked_at.is_empty() {
            rows.push(("Looked at", self.looked_at.join("; ")));
        }
        let missing = self.missing.iter().map(|missing| escape_controls(missing).into_owned());
        rows.extend(missing.map(|missing| ("Not seen", missing)));
        rows
    }

    /// The label of a process without a cause, and what it does.
    fn without_cause(&self) -> (&'static str, String) {
        let label = match self.end {
            Some(_) => "Ended",
            None if self.is_healthy() => "Healthy",
            None => "No cause",
        };
        let end = self.end.iter().map(|end| end.cause.clone());
        let activity = self.activity.iter().map(ToString::to_string);
        let parts: Vec<_> = end.chain(activity).chain(["nothing stands out".to_owned()]).collect();
        (label, parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Diagnosis, Evidence, ProcessEnd, ProcessIdentity};

    #[test]
    fn a_diagnosis_in_words_begins_with_its_cause() {
        let missing = ["events: \u{1b}".to_owned()];
        let of = |end: Option<&ProcessEnd>| {
            let evidence = Evidence::default().with_end(end).with_missing(&missing);
            Diagnosis::new(ProcessIdentity::default(), &evidence)
        };
        let end = ProcessEnd::new("the process was killed");
        let rows = of(Some(&end)).rows("shop", |_| Some("dipc help crash".to_owned()));
        let texts: Vec<_> = rows.iter().map(|(label, text)| (*label, &**text)).collect();
        assert_eq!(
            texts,
            [
                ("Cause", "The process was killed"),
                ("", "dipc help crash"),
                ("Process", "shop"),
                ("Not seen", r"events: \u001b"),
            ]
        );
        assert_eq!(of(None).first_line(), "No cause: nothing stands out");
    }
}
