//! Completion in bash, with the script that `dipc completions bash` prints.

use std::path::Path;
use std::process::Command;

use crate::program::Running;
use crate::runtime::{Runtime, say_not_run};
use crate::workload::Workload;

/// What bash would offer for the last word of a command line; none where there is no bash.
fn offered(words: &[&str]) -> Option<Vec<String>> {
    // As bash calls a completion function: the command, the word and the one before it.
    const SCRIPT: &str = r#"
        source <(dipc completions bash) || exit 9
        function=$(complete -p dipc | sed 's/.* -F \([^ ]*\) .*/\1/')
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
        "$function" dipc "${@: -1}" "${@: -2:1}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    if Command::new("bash").arg("--version").output().is_err() {
        say_not_run("there is no bash");
        return None;
    }
    let mut command = Command::new("bash");
    let folder = Path::new(env!("CARGO_BIN_EXE_dipc")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    command.args(["--norc", "-c", SCRIPT, "bash"]).args(words).env("PATH", path);
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let text = Running::start(command).finish().with_code(0).text();
    Some(text.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect())
}

#[test]
fn profiles_are_completed() {
    let Some(profiles) = offered(&["dipc", "trace", "--profile", "gc-"]) else { return };
    assert_eq!(profiles, ["gc-verbose", "gc-collect"]);
    let second = offered(&["dipc", "collect", "--profile", "gc-verbose,data"]).unwrap();
    assert_eq!(second, ["gc-verbose,database"]);
    assert_eq!(offered(&["dipc", "rep"]).unwrap(), ["report", "repair"]);
    assert_eq!(offered(&["dipc", "report", "a.nettrace", "top"]).unwrap(), ["topN"]);
}

#[test]
fn pids_and_names_of_running_runtimes_are_completed() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let pid = workload.pid().to_string();
    for command in ["trace", "info", "dump", "doctor"] {
        let Some(pids) = offered(&["dipc", command, "-p", &pid]) else { return };
        assert!(pids.contains(&pid), "{command}: {pids:?}");
        let names = offered(&["dipc", command, "--name", "workl"]).unwrap();
        assert!(names.iter().any(|name| name == "workload"), "{command}: {names:?}");
    }
    let (some, _) = pid.split_at(1);
    let pids = offered(&["dipc", "trace", "--process-id", some]).unwrap();
    assert!(pids.contains(&pid) && pids.iter().all(|pid| pid.starts_with(some)), "{pids:?}");
}
