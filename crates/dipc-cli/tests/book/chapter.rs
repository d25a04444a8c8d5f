//! A chapter: its blocks, what is prepared for them, and the run of its commands.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::executable;
use crate::output::{self, Varies};
use crate::runtime::{self, Runtime};
use crate::session::Session;

/// A step of a chapter, in its order.
enum Step {
    /// A file of testdata under the name that the chapter has for it.
    File {
        name: String,
        source: PathBuf,
    },
    /// Something that not every machine has.
    Need(String),
    /// A command that is not shown.
    Hidden(String),
    Shown(Shown),
}

/// A command of a `console` block, with its output.
struct Shown {
    command: String,
    /// The command to run instead, if the shown one does not end, or needs a reader's input.
    instead: Option<String>,
    /// The lines of the file with the output.
    lines: Range<usize>,
    expected: Vec<String>,
    varies: Varies,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("help")
}

/// Runs the commands of a chapter.
pub(crate) fn check(file: &str) {
    let path = folder().join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let mut session = Session::start();
    let mut edits = Vec::new();
    let mut failed_before = None;
    for step in steps(&lines) {
        match step {
            Step::File { name, source } => unpack(&source, &session.folder().join(name)),
            Step::Need(what) if !provide(&what, &mut session) => return,
            Step::Need(_) => {}
            Step::Hidden(command) => {
                let (printed, code) = session.run(&command, None);
                assert_eq!(code, 0, "{file}: {command}: {printed:#?}");
                session.learn_pids();
            }
            Step::Shown(shown) => {
                let command = shown.instead.as_ref().unwrap_or(&shown.command);
                let awaited = command.ends_with('&').then_some(shown.expected.len());
                let (printed, code) = session.run(command, awaited);
                let at = format!("{}:{}: $ {}", path.display(), shown.lines.start, shown.command);
                if let Some(before) = failed_before.take() {
                    assert_eq!(shown.command, "echo $?", "{before}: failed, and its exit code is not shown");
                }
                if code != 0 {
                    failed_before = Some(format!("{at}: {printed:#?}"));
                }
                let printed = shown.varies.own_rows(printed, &session);
                let printed = session.as_written(printed);
                if !output::matches(&shown.expected, &printed, shown.varies) {
                    let elided = shown.expected.iter().any(|line| line.ends_with(output::ELISION));
                    assert!(
                        is_update() && !elided,
                        "{at}\n--- the chapter has\n{}\n--- the program printed\n{}",
                        shown.expected.join("\n"),
                        printed.join("\n")
                    );
                    edits.push((shown.lines, printed));
                }
            }
        }
    }
    assert_eq!(failed_before, None, "its exit code is not shown");
    if !edits.is_empty() {
        write(&path, lines, edits);
    }
}

fn is_update() -> bool {
    std::env::var_os("DIPC_UPDATE_GOLDEN").is_some()
}

fn write(path: &Path, mut lines: Vec<String>, edits: Vec<(Range<usize>, Vec<String>)>) {
    for (range, printed) in edits.into_iter().rev() {
        lines.splice(range, printed);
    }
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

fn steps(lines: &[String]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut varies = Varies::default();
    let mut instead = None;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        if let Some((word, rest)) = directive(line) {
            match word {
                "file" => {
                    let (name, source) = rest.split_once(" = ").expect("file: NAME = PATH");
                    steps.push(Step::File { name: name.into(), source: runtime::testdata().join(source) });
                }
                "needs" => steps.push(Step::Need(rest.into())),
                "run" => steps.push(Step::Hidden(rest.into())),
                "varies" => varies = Varies::parse(rest),
                "instead" => instead = Some(rest.to_owned()),
                other => panic!("'{other}' is no directive: {line}"),
            }
        } else if line == "```console" {
            let end = at + lines[at..].iter().position(|line| line == "```").expect("a block has an end");
            let mut shown = commands(lines, at..end, varies);
            if let Some(first) = shown.first_mut() {
                first.instead = instead.take();
            }
            steps.extend(shown.into_iter().map(Step::Shown));
            (at, varies) = (end + 1, Varies::default());
        } else if line.starts_with("```") {
            at += 1 + lines[at..].iter().position(|line| line == "```").expect("a block has an end");
        }
    }
    steps
}

/// The word and the rest of `<!-- word: rest -->`.
fn directive(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(": ")
}

fn commands(lines: &[String], block: Range<usize>, varies: Varies) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    for at in block {
        let line = &lines[at];
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push(Shown {
                command: command.to_owned(),
                instead: None,
                lines: at + 1..at + 1,
                expected: Vec::new(),
                varies,
            }),
            // A command of several lines.
            (None, Some(shown)) if shown.command.ends_with('\\') => {
                shown.command = format!("{}\n{line}", shown.command);
                shown.lines = at + 1..at + 1;
            }
            (None, Some(shown)) => {
                shown.expected.push(line.trim_end().to_owned());
                shown.lines.end = at + 1;
            }
            (None, None) => panic!("line {}: a console block begins with a command", at + 1),
        }
    }
    // A blank line before the next command is no output.
    for shown in &mut commands {
        while shown.expected.last().is_some_and(String::is_empty) {
            shown.expected.pop();
            shown.lines.end -= 1;
        }
    }
    commands
}

fn unpack(source: &Path, destination: &Path) {
    fs::write(destination, testdata::bytes_at(source)).unwrap();
}

/// Gives the chapter what it needs; false, once that was said, where the machine lacks it.
fn provide(need: &str, session: &mut Session) -> bool {
    match need.split_once(" as ").unwrap_or((need, "")) {
        ("net-9.0", name) => {
            let Some(installation) = runtime::installation(Runtime::Net9_0) else { return false };
            session.add_dotnet(&installation);
            let source = runtime::testdata().join("workload/net8.0");
            let assembly = renamed(&fs::read(source.join("workload.dll")).unwrap(), name);
            fs::write(session.folder().join(name).with_extension("dll"), assembly).unwrap();
            let settings = session.folder().join(name).with_extension("runtimeconfig.json");
            fs::copy(source.join("workload.runtimeconfig.json"), settings).unwrap();
            true
        }
        ("native", name) => {
            let Some(workload) = Runtime::NativeAot9.workload() else { return false };
            executable::copy(workload.get_program(), session.folder().join(name));
            true
        }
        ("root", _) => {
            let root = rustix::process::geteuid().is_root();
            if !root {
                runtime::say_not_run("it makes a container, which needs root");
            }
            root
        }
        ("export", _) => {
            if cfg!(not(feature = "export")) {
                runtime::say_not_run("it exports recordings, which the feature export does");
            }
            cfg!(feature = "export")
        }
        (other, _) => panic!("'{other}' is nothing that can be needed"),
    }
}

/// The workload's assembly under another name, so that other tests' processes are not meant by it.
fn renamed(assembly: &[u8], name: &str) -> Vec<u8> {
    const NAME: &[u8] = b"workload";
    assert_eq!(name.len(), NAME.len(), "'{name}' takes the bytes of another name");
    let mut renamed = assembly.to_vec();
    let mut at = 0;
    while let Some(found) = renamed[at..].windows(NAME.len()).position(|bytes| bytes == NAME) {
        at += found;
        renamed[at..at + NAME.len()].copy_from_slice(name.as_bytes());
    }
    renamed
}
