//! The prompt of `dump analyze -i`: on a terminal, and with lines of a pipe. No runtime is needed.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::pty::open_terminal;

/// Longer than a view of a small core dump takes on a loaded machine of two slow cores.
const PATIENCE: Duration = Duration::from_secs(60);

fn core() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.core");
    std::fs::write(&path, testdata::bytes("cores/shop-heap.core.xz")).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

fn analyze(core: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.args(["dump", "analyze", core]).args(words).stdin(Stdio::null()).output().unwrap()
}

/// The output of the prompt for lines of a pipe.
fn piped(core: &str, words: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.args(["dump", "analyze", core, "-i"]).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn lines_of_a_pipe_are_views_and_their_output_is_that_of_the_command_line() {
    let (_folder, core) = core();
    let shown = piped(&core, &[], "threads\n\nheap --rows 5\nclrstack -all\nobjects --type 'Shop.Row' -n 2");
    let expected = [
        &["threads"][..],
        &["heap", "--rows", "5"],
        &["stacks"],
        &["objects", "--type", "Shop.Row", "-n", "2"],
    ];
    let expected: Vec<_> = expected.map(|words| text(&analyze(&core, words).stdout)).into();
    assert_eq!(text(&shown.stdout), expected.concat());
    // The heap lacks names of types, as the view alone says.
    assert_eq!(shown.status.code(), Some(6), "{}", text(&shown.stderr));
    assert_eq!(analyze(&core, &["heap"]).status.code(), Some(6));
}

#[test]
fn errors_do_not_end_the_prompt() {
    let (_folder, core) = core();
    let shown = piped(&core, &[], "nonsense\nheap --nonsense\nobject 'x\nthreads\nexit\nlocks\n");
    assert_eq!(text(&shown.stdout), text(&analyze(&core, &["threads"]).stdout));
    let errors = text(&shown.stderr);
    for error in ["no view is called 'nonsense'", "--nonsense", "a quotation mark is missing"] {
        assert!(errors.contains(error), "{error}: {errors}");
    }
    // A script learns of them.
    assert_eq!(shown.status.code(), Some(2), "{errors}");
}

#[test]
fn the_format_is_that_of_the_line_or_of_the_command() {
    let (_folder, core) = core();
    let json = text(&analyze(&core, &["threads", "--format", "json"]).stdout);
    assert_eq!(text(&piped(&core, &[], "threads --format json\n").stdout), json);
    assert_eq!(text(&piped(&core, &["--format", "json"], "threads\n").stdout), json);
}

#[test]
fn help_lists_the_views_and_the_options_of_one() {
    let (_folder, core) = core();
    let all = text(&piped(&core, &[], "help\n").stdout);
    for word in ["\nthreads ", "\nrequests ", "\noverview ", "\nexit ", "dumpheap -stat"] {
        assert!(format!("\n{all}").contains(word), "{word}: {all}");
    }
    for line in ["help heap\n", "heap --help\n", "help dumpheap\n"] {
        let of_heap = text(&piped(&core, &[], line).stdout);
        assert!(of_heap.contains("--generation"), "{line}: {of_heap}");
    }
}

#[test]
fn wrong_words_on_the_command_line_are_refused() {
    let (_folder, core) = core();
    for words in [&["threads", "-i"][..], &["-c", "threads", "-i"]] {
        assert_eq!(analyze(&core, words).status.code(), Some(2), "{words:?}");
    }
    assert_eq!(analyze("-", &["-i"]).status.code(), Some(2));
}

/// A prompt on a terminal.
struct Prompt {
    child: Child,
    terminal: File,
    output: Receiver<Vec<u8>>,
    seen: String,
}

impl Prompt {
    fn start(core: &str) -> Self {
        let (terminal, _, slave) = open_terminal(100);
        let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
        command.args(["dump", "analyze", core, "-i"]).env("TERM", "xterm");
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let child = command.spawn().unwrap();
        let mut master = terminal.try_clone().unwrap();
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = master.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, terminal, output, seen: String::new() }
    }

    fn type_keys(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until a text is there, and takes the output up to its end.
    fn until(&mut self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(part) {
                let rest = self.seen.split_off(at + part.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let bytes = self.output.recv_timeout(left);
            let bytes = bytes.unwrap_or_else(|_| panic!("{part:?} is not shown: {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn end(mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            if Instant::now() > deadline {
                self.child.kill().unwrap();
                panic!("the prompt goes on: {:?}", self.seen);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_terminal_has_completion_history_and_keys_that_cancel_and_end() {
    let (_folder, core) = core();
    let mut prompt = Prompt::start(&core);
    prompt.until("Ctrl-D ends");
    prompt.until("dipc> ");
    // Tab completes the view: two begin with these letters.
    prompt.type_keys("thread\t\t");
    prompt.until("threadpool");
    prompt.type_keys("s\r");
    prompt.until("MANAGED");
    prompt.until("dipc> ");
    // Ctrl-C gives up a line, and the next one counts.
    prompt.type_keys("nonsense\u{3}");
    prompt.until("dipc> ");
    prompt.type_keys("lock\t\r");
    let shown = prompt.until("dipc> ");
    assert!(!shown.contains("no view is called"), "{shown}");
    // Up recalls the line before the last one.
    prompt.type_keys("\u{1b}[A\u{1b}[A\r");
    prompt.until("MANAGED");
    prompt.until("dipc> ");
    prompt.type_keys("\u{4}");
    assert_eq!(prompt.end(), Some(0));
}
