//! A shell in which the commands of a chapter run, with `dipc` on its path and a folder of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Longer than any command takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(40);
/// The line that follows the output of a command.
const END: &str = "=== end of the output:";
/// The folder of a chapter, and its folder of temporary files, as chapters write them.
const FOLDER: &str = "/home/you";
const TEMPORARY: &str = "/tmp";
/// The volume of a pod, which is a folder of the chapter's folder.
const VOLUME: &str = "/diagnostics";
/// The finding of `dipc doctor` on users, as a user who is not root sees it, and as root.
const USERS: (&str, &str) =
    ("the process and dipc are of user 1000", "the process is of user 0, and dipc runs as root");
/// The folder of .NET.
const DOTNET: &str = "/usr/share/dotnet";

pub(crate) struct Session {
    shell: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    folder: tempfile::TempDir,
    /// The texts that chapters have, and the real ones: paths, above all.
    texts: Vec<(&'static str, String)>,
    /// The processes of the chapter: the number that stands there, and the real one.
    pids: Vec<(String, String)>,
}

impl Session {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let temporary = folder.path().join("tmp");
        fs::create_dir(&temporary).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_dipc")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
        let (output, sink) = std::io::pipe().unwrap();
        let mut shell = Command::new("sh")
            .current_dir(folder.path())
            .env("PATH", path)
            .env("HOME", folder.path())
            .env("TMPDIR", temporary)
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
            .env_remove("DOTNET_DiagnosticPorts")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::piped())
            .stdout(sink.try_clone().unwrap())
            .stderr(sink)
            .process_group(0)
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let stdin = shell.stdin.take().unwrap();
        let texts = vec![
            (VOLUME, folder.path().join("diagnostics").display().to_string()),
            (TEMPORARY, folder.path().join("tmp").display().to_string()),
            (FOLDER, folder.path().display().to_string()),
            (USERS.0, USERS.1.to_owned()),
        ];
        Self { shell, stdin, lines, folder, texts, pids: Vec::new() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Puts .NET on the shell's path.
    pub(crate) fn add_dotnet(&mut self, folder: &Path) {
        let folder = folder.canonicalize().unwrap().display().to_string();
        self.run(&format!("PATH=$PATH:{folder}"), None);
        self.texts.push((DOTNET, folder));
    }

    /// Runs a command: its output, of both streams, and its exit code. A background command has printed its
    /// output when this many lines have arrived.
    pub(crate) fn run(&mut self, command: &str, awaited: Option<usize>) -> (Vec<String>, i32) {
        let command = self
            .pids
            .iter()
            .fold(command.to_owned(), |command, (written, real)| replace_number(&command, written, real));
        let command = command.replace(VOLUME, "\"$HOME\"/diagnostics").replace(FOLDER, "\"$HOME\"");
        // The exit code of the command before is there for `echo $?`; the shell's own input is not for
        // commands.
        self.send(&format!("(exit ${{last:-0}})\n{{ {command}\n}} </dev/null\nlast=$?\n"));
        let deadline = Instant::now() + PATIENCE;
        let mut printed = Vec::new();
        while awaited.is_some_and(|count| printed.len() < count) {
            printed.push(self.line(deadline, &command, &printed));
        }
        self.send(&format!("printf '\\n%s%d\\n' '{END}' $last\n"));
        loop {
            let line = self.line(deadline, &command, &printed);
            if let Some(code) = line.strip_prefix(END) {
                // The line break before the mark.
                if printed.last().is_some_and(String::is_empty) {
                    printed.pop();
                }
                return (printed, code.parse().unwrap());
            }
            printed.push(line.trim_end().to_owned());
        }
    }

    /// Learns which processes the chapter's numbers stand for.
    pub(crate) fn learn_pids(&mut self) {
        let (variables, _) = self.run("set | grep '^pid_'", None);
        self.pids = variables
            .iter()
            .filter_map(|line| line.strip_prefix("pid_")?.split_once('='))
            .map(|(written, real)| (written.to_owned(), real.trim_matches('\'').to_owned()))
            .collect();
    }

    /// The lines with the paths and process ids that chapters write.
    pub(crate) fn as_written(&self, lines: Vec<String>) -> Vec<String> {
        let written = |line: String| {
            let line = self.texts.iter().fold(line, |line, (written, real)| line.replace(real, written));
            self.pids.iter().fold(line, |line, (written, real)| replace_number(&line, real, written))
        };
        lines.into_iter().map(written).collect()
    }

    /// Whether this is a process of the chapter, which all are of the shell's group. True where there is no
    /// `/proc` to look into.
    pub(crate) fn has_started(&self, pid: u32) -> bool {
        if !Path::new("/proc/self/stat").exists() {
            return true;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name in parentheses: state, parent, group.
        let group = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(2));
        group == Some(&self.shell.id().to_string())
    }

    fn send(&mut self, text: &str) {
        self.stdin.write_all(text.as_bytes()).and_then(|()| self.stdin.flush()).expect("the shell runs");
    }

    fn line(&self, deadline: Instant, command: &str, printed: &[String]) -> String {
        let left = deadline.saturating_duration_since(Instant::now());
        self.lines.recv_timeout(left).unwrap_or_else(|error| panic!("{command}: {error}: {printed:#?}"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What still runs in the background, too.
        let _ = kill_process_group(Pid::from_child(&self.shell), Signal::KILL);
        let _ = self.shell.wait();
    }
}

/// Replaces a number where it is not a part of another, nor of one with a fraction or commas: a process id
/// may be as short as those.
fn replace_number(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        replaced.push_str(before);
        let continues = |c: char| c.is_ascii_digit() || c == '_';
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let is_fraction = replaced.ends_with(['.', ',']) && is_digit(replaced.chars().rev().nth(1))
            || after.starts_with(['.', ',']) && is_digit(after.chars().nth(1));
        let is_part = is_fraction || replaced.ends_with(continues) || after.starts_with(continues);
        replaced.push_str(if is_part { from } else { to });
        rest = after;
    }
    replaced + rest
}

#[test]
fn process_ids_are_not_parts_of_other_numbers() {
    let replaced = |text: &str| replace_number(text, "585", "14711");
    assert_eq!(replaced("585 a-585-1 pid 585: 585"), "14711 a-14711-1 pid 14711: 14711");
    for text in ["51.585Z", "1,585,000 bytes", "585.2 ms", "5850", "1585", "ring_585_1"] {
        assert_eq!(replaced(text), text);
    }
    assert_eq!(replaced("it is 585. It"), "it is 14711. It");
}
