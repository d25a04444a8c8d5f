//! `testdata/commands/real-runtimes.txt`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::parity;
use crate::runtime::{Runtime, testdata};

const HEAD: &str = "What real runtimes answer to every command of the protocol, in every form, and what becomes of them.\n\
    Written and compared by crates/dipc-client/tests/commands (cargo xtask commands [--update]).\n";

/// The outcome of each case on each runtime.
pub(crate) type Outcomes = BTreeMap<String, BTreeMap<&'static str, String>>;

pub(crate) struct Report {
    committed: Outcomes,
    found: Outcomes,
    differences: Vec<String>,
}

fn path() -> PathBuf {
    testdata().join("commands/real-runtimes.txt")
}

pub(crate) fn updates() -> bool {
    std::env::var_os("DIPC_UPDATE_GOLDEN").is_some()
}

/// The committed outcomes.
pub(crate) fn committed() -> Outcomes {
    let mut outcomes = Outcomes::new();
    let mut case = String::new();
    for line in fs::read_to_string(path()).unwrap_or_default().lines().skip(HEAD.lines().count()) {
        let Some(outcome) = line.strip_prefix("  ") else {
            line.clone_into(&mut case);
            continue;
        };
        let (name, outcome) = outcome.split_once(' ').unwrap();
        let runtime = Runtime::ALL.into_iter().find(|runtime| runtime.name() == name).unwrap();
        outcomes.entry(case.clone()).or_default().insert(runtime.name(), outcome.trim_start().to_owned());
    }
    outcomes
}

impl Report {
    pub(crate) fn read() -> Self {
        let committed = committed();
        Self { found: committed.clone(), committed, differences: Vec::new() }
    }

    pub(crate) fn compare(&mut self, runtime: Runtime, outcomes: &[(&'static str, String)]) {
        let name = runtime.name();
        for (case, outcome) in outcomes {
            let expected = self.committed.get(*case).and_then(|outcomes| outcomes.get(name));
            if expected != Some(outcome) {
                let expected = expected.map_or("nothing", String::as_str);
                self.differences.push(format!("{case} on {name}:\n  was {expected}\n  is  {outcome}"));
            }
            self.found.entry((*case).to_owned()).or_default().insert(name, outcome.clone());
        }
    }

    /// Writes the outcomes, or fails if they differ.
    pub(crate) fn finish(mut self, cases: &[&str]) {
        let gone = self.committed.keys().filter(|case| !cases.contains(&case.as_str()));
        self.differences.extend(gone.map(|case| format!("{case}: no longer tried")));
        if updates() {
            fs::write(path(), self.text(cases)).unwrap();
            return parity::check(&self.found);
        }
        assert!(
            self.differences.is_empty(),
            "{}\n(cargo xtask commands --update rewrites the expectations)",
            self.differences.join("\n")
        );
        parity::check(&self.committed);
    }

    fn text(&self, cases: &[&str]) -> String {
        let mut text = HEAD.to_owned();
        for case in cases {
            text.push_str(case);
            text.push('\n');
            for runtime in Runtime::ALL {
                if let Some(outcome) = self.found[*case].get(runtime.name()) {
                    writeln!(text, "  {:<12} {outcome}", runtime.name()).unwrap();
                }
            }
        }
        text
    }
}
