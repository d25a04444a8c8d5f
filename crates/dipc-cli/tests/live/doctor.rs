//! `doctor`: each problem is made real, and has to be found with its cause and its fix.

mod containers;
mod dumps;
mod sampling;
mod settings;
mod sockets;
mod states;
mod targets;

use serde_json::Value;

use crate::program::run;

/// The report about one process.
struct Examined(Value);

/// Examines a process, and checks the exit code.
#[track_caller]
fn examine(pid: u32, code: i32) -> Examined {
    examined(&run(["doctor", "-p", &pid.to_string(), "--format", "json"]).with_code(code).json())
}

fn examined(report: &Value) -> Examined {
    let processes = report["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1, "{report}");
    Examined(processes[0].clone())
}

impl Examined {
    fn find(&self, check: &str) -> Option<&Value> {
        let findings = self.0["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["check"] == check)
    }

    /// Returns all words of a finding, after checking its status.
    #[track_caller]
    fn finding(&self, check: &str, status: &str) -> String {
        let finding = self.find(check).unwrap_or_else(|| panic!("no {check} in {:#}", self.0));
        assert_eq!(finding["status"], status, "{check} in {:#}", self.0);
        let words = ["seen", "cause", "fix"].map(|part| finding[part].as_str().unwrap_or_default());
        words.join(" | ")
    }

    /// Returns the same, after checking that all parts are in it.
    #[track_caller]
    fn names(&self, check: &str, status: &str, parts: &[&str]) -> String {
        let words = self.finding(check, status);
        for part in parts {
            assert!(words.contains(part), "'{part}' is not in {check}: {words}");
        }
        words
    }

    /// Asserts that these checks, and no others, are problems.
    #[track_caller]
    fn only_problems(&self, checks: &[&str]) {
        let findings = self.0["findings"].as_array().unwrap().iter();
        let problems: Vec<_> =
            findings.filter(|it| it["status"] == "problem").map(|it| &it["check"]).collect();
        assert_eq!(problems, checks, "{:#}", self.0);
        assert_eq!(self.0["reachable"], checks.is_empty(), "{:#}", self.0);
    }
}
