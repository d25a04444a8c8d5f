//! `dipc` on terminals of a certain width.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tempfile::TempDir;

use super::Sim;

/// Longer than a program takes to end on a loaded machine of two slow cores.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens a terminal of so many columns: our side, the path of the program's, and that side opened.
pub(super) fn open_terminal(columns: u16) -> (File, String, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = OpenOptions::new().read(true).write(true).open(&name).unwrap();
    tcsetwinsize(&slave, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (File::from(master), name, slave)
}

/// The output of a command on a terminal with this many columns, without colours; overwritten text is kept as
/// a separate line.
fn on_terminal(columns: u16, arguments: &[&str]) -> Vec<String> {
    let (mut master, name, slave) = open_terminal(columns);
    let terminal = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let mut child = {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
        command.args(arguments).env("TERM", "xterm").env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        command.stdin(Stdio::null()).stdout(terminal()).stderr(terminal()).spawn().unwrap()
    };
    drop(slave);
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    // Linux says that the other side is gone with an error.
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..count]);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&bytes));
    let text = String::from_utf8(bytes).unwrap();
    let text = anstream::adapter::strip_str(&text).to_string();
    text.split(['\r', '\n']).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A recording of testdata, unpacked.
fn recording(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(Path::new(name).file_name().unwrap());
    testdata::write(&format!("{name}.xz"), &path);
    (folder, path)
}

#[track_caller]
fn assert_fits(lines: &[String], columns: u16, arguments: &[&str]) {
    for line in lines {
        assert!(line.chars().count() <= usize::from(columns), "{arguments:?}: {line}");
    }
}

#[test]
fn a_screen_ends_with_its_terminal() {
    let sim = Sim::start("sim");
    let (mut master, _, slave) = open_terminal(80);
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.args(["counters", "monitor", "-p", &sim.child.id().to_string()]).env("TERM", "xterm");
    let side = || slave.try_clone().unwrap();
    let mut child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
    drop((slave, command));
    let (mut shown, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&shown).contains("COUNTER") {
        let count = master.read(&mut buffer).unwrap();
        shown.extend_from_slice(&buffer[..count]);
    }
    drop(master);
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it goes on without a terminal");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A program that was started goes on: the terminal is the user's again, and Ctrl-C works.
#[test]
fn a_screen_ends_before_the_program_that_was_started() {
    let (folder, replayed) = recording("counters/net10-csv.nettrace");
    let pid_file = folder.path().join("pid");
    let program = format!(
        "echo $$ > '{}'; exec '{}' sim --replay '{}' --speed max --connect \"${{DOTNET_DiagnosticPorts%%,*}}\"",
        pid_file.display(),
        env!("CARGO_BIN_EXE_dipc"),
        replayed.display()
    );
    let (mut master, _, slave) = open_terminal(80);
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.args(["counters", "monitor", "--", "sh", "-c", &program]).env("TERM", "xterm");
    let side = || slave.try_clone().unwrap();
    let mut child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
    drop((slave, command));
    let mut keys = master.try_clone().unwrap();
    let (sender, pieces) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = master.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut shown = Vec::new();
    let mut comes = |text: &str| {
        while !String::from_utf8_lossy(&shown).contains(text) {
            let Ok(piece) = pieces.recv_timeout(PATIENCE) else { return false };
            shown.extend_from_slice(&piece);
        }
        true
    };
    // Without a value the command fails, and ends the program.
    let has_values = comes("System.Runtime");
    keys.write_all(b"q").unwrap();
    // The screen before is shown again.
    let is_left = comes("\u{1b}[?1049l");
    let waits = child.try_wait().unwrap().is_none();
    let pid = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert_eq!((has_values, is_left, waits), (true, true, true));
}

#[test]
fn tables_fit_the_terminal() {
    let sim = Sim::start("a-process-with-a-long-name");
    let pid = sim.child.id().to_string();
    for name in ["net10-all.nettrace", "net10-sample.nettrace"] {
        let (_folder, file) = recording(&format!("traces/{name}"));
        let file = file.to_str().unwrap();
        for columns in [80, 100, 132] {
            let lines = on_terminal(columns, &["stat", file]);
            assert_fits(&lines, columns, &["stat"]);
            assert!(lines.iter().any(|line| line.contains("NAME") && line.contains("EVENTS")), "{lines:?}");
            let mut reports = vec!["topN", "stacks"];
            if name == "net10-all.nettrace" {
                reports.extend([
                    "gc",
                    "alloc",
                    "exceptions",
                    "contention",
                    "threadpool",
                    "startup",
                    "jit",
                    "events",
                ]);
            }
            for report in reports {
                assert_fits(&on_terminal(columns, &["report", file, report]), columns, &[report]);
            }
        }
    }
    let lines = on_terminal(80, &["list-profiles"]);
    assert_fits(&lines, 80, &["list-profiles"]);
    assert!(lines.iter().any(|line| line.starts_with("gc-collect ")), "{lines:?}");
    let lines = on_terminal(80, &["ps"]);
    // Before the table, processes of the other tests that end meanwhile may be warned of.
    let heading = lines.iter().find(|line| line.trim_start().starts_with("PID ")).unwrap();
    assert!(heading.chars().count() <= 80, "{heading}");
    let row = lines.iter().find(|line| line.trim_start().starts_with(&pid)).unwrap();
    assert!(row.chars().count() <= 80, "{row}");
}

#[test]
fn a_recording_shows_its_providers_and_the_time_that_is_left() {
    let sim = Sim::start("sim");
    let folder = tempfile::tempdir().unwrap();
    let (file, pid) = (folder.path().join("x.nettrace"), sim.child.id().to_string());
    let trace = ["trace", "-p", &pid, "-o", file.to_str().unwrap()];
    for columns in [80, 100] {
        let lines = on_terminal(columns, &[&trace[..], &["--duration", "1500ms"]].concat());
        let table: Vec<_> =
            lines.iter().skip_while(|line| !line.starts_with("Provider Name")).take(3).collect();
        assert!(table.iter().all(|line| line.chars().count() <= usize::from(columns)), "{table:?}");
        assert!(table[1].contains("0x") && table[1].contains("Informational(4)"), "{table:?}");
        assert_eq!(table[0].contains("Enabled By"), columns == 100, "{table:?}");
        let live: Vec<_> = lines.iter().filter(|line| line.starts_with("[00:00:00:0")).collect();
        assert!(live[0].contains("]  0:0") && live[0].contains(" left  "), "{live:?}");
        assert!(live.iter().all(|line| line.chars().count() <= usize::from(columns)), "{live:?}");
    }
}

/// Asks for the process on a terminal, and nowhere else.
#[test]
fn offers_available_processes_to_a_command_without_one() {
    let sim = Sim::start("choice-of-processes");
    let pid = sim.child.id().to_string();
    let (mut master, name, slave) = open_terminal(100);
    let terminal = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dipc"))
        .arg("info")
        .env("TERM", "xterm")
        .stdin(terminal())
        .stdout(terminal())
        .stderr(terminal())
        .spawn()
        .unwrap();
    drop(slave);
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    let mut answers = ["no-such\n".to_owned(), format!("{pid}\n")].into_iter();
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        seen.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        if seen.matches("Number or process id: ").count() > 2 - answers.len()
            && let Some(answer) = answers.next()
        {
            master.write_all(answer.as_bytes()).unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{seen}");
    let listed = seen.lines().find(|line| line.contains("choice-of-processes")).unwrap();
    assert!(listed.split_whitespace().nth(1) == Some(&*pid) && listed.contains(" sim --rate"), "{seen}");
    assert!(seen.contains("'no-such' is not one of them") && seen.contains("Process id"), "{seen}");

    // A program is not asked: it gets the error, with the same candidates.
    let mut piped = Command::new(env!("CARGO_BIN_EXE_dipc"));
    let piped = piped.arg("info").stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8(piped.stderr).unwrap();
    assert_eq!((piped.status.code(), piped.stdout.as_slice()), (Some(2), &b""[..]), "{error}");
    assert!(error.starts_with("error: the following required arguments were not provided: "), "{error}");
    assert!(error.contains(&format!("  {pid}  choice-of-processes  ")), "{error}");
}

#[test]
fn enter_at_the_terminal_ends_a_recording() {
    let sim = Sim::start("sim");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.nettrace");
    let (mut master, _, slave) = open_terminal(80);
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.args(["trace", "-p", &sim.child.id().to_string(), "-o"]).arg(&file);
    let mut child = command.stdin(slave).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    let deadline = Instant::now() + PATIENCE;
    while fs::metadata(&file).map_or(0, |file| file.len()) == 0 {
        assert!(Instant::now() < deadline, "nothing is recorded");
        thread::sleep(Duration::from_millis(20));
    }
    master.write_all(b"\n").unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it records on");
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(0));
}
