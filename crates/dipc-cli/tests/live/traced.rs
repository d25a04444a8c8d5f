//! The IL offsets and source lines of frames in memory, compared with those that the program finds for its
//! own stacks (`testdata/workload/traced`).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes, program_of_8_with_pdb, testdata};
use crate::workload::Target;

/// A stack as the program found it.
struct Row {
    name: String,
    /// Token and IL offset of each frame, the innermost first.
    offsets: Vec<(String, u64)>,
    /// File and line of each frame, as `Lines.cs:7`; `:0` if unknown.
    lines: Vec<String>,
}

impl Row {
    /// Parses `name|token:IL token:IL|file:line file:line`.
    fn parse(line: &str) -> Self {
        let [name, offsets, lines] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let pair = |text: &str| {
            let (token, il) = text.split_once(':').unwrap();
            (format!("0x{token}"), il.parse().unwrap())
        };
        Self {
            name: name.to_owned(),
            offsets: offsets.split(' ').map(pair).collect(),
            lines: lines.split(' ').map(ToOwned::to_owned).collect(),
        }
    }
}

fn view(pid: &str, arguments: &[&str]) -> Value {
    run([&["dump", "analyze", "-p", pid], arguments, &["--format", "json"]].concat()).with_code(0).json()
}

fn lines_folder() -> PathBuf {
    testdata().join("workload/lines")
}

/// Starts the program, with `Lines.dll` of a folder, and returns the stacks that it has found; `None` without
/// the runtime.
fn start(runtime: Runtime, folder: &Path) -> Option<(Target, Vec<Row>)> {
    let mut program = runtime.program("traced/traced.dll")?;
    program.arg(folder);
    let target = Target::start(program);
    let mut rows = Vec::new();
    loop {
        match target.line() {
            line if line == "ready" => return Some((target, rows)),
            line => rows.push(Row::parse(&line)),
        }
    }
}

/// A name with its frames.
type Stack = (String, Vec<Value>);

/// The frames of the exceptions that the program keeps, and of its thread that waits, by name.
fn stacks(pid: &str) -> Vec<Stack> {
    let kept = view(pid, &["objects", "--type", "^Kept$"]);
    let mut stacks: Vec<_> =
        kept["rows"].as_array().unwrap().iter().map(|kept| exception(pid, kept)).collect();
    let threads = view(pid, &["stacks"]);
    let parked = threads["threads"].as_array().unwrap().iter().find(|thread| thread["name"] == "parked");
    let frames = parked.unwrap_or_else(|| panic!("{threads}"))["frames"].as_array().unwrap();
    // The program found the stack of the method that waits without this method itself.
    let own = frames.iter().position(|frame| frame["method"] == "Traced.Park()").unwrap();
    stacks.push(("parked".to_owned(), frames[own + 1..].to_vec()));
    stacks
}

fn exception(pid: &str, kept: &Value) -> Stack {
    let kept = view(pid, &["object", kept["address"].as_str().unwrap(), "--no-path"]);
    let field = |name: &str| {
        let fields = kept["fields"].as_array().unwrap();
        &fields.iter().find(|field| field["name"] == name).unwrap()["value"]
    };
    let chain = view(pid, &["exceptions", field("Exception")["address"].as_str().unwrap()]);
    let name = field("Name")["text"].as_str().unwrap().to_owned();
    (name, chain[0]["frames"].as_array().unwrap().clone())
}

/// The file and the line of a frame in the form of [`Row`].
fn line(frame: &Value) -> String {
    let file = frame["file"].as_str().unwrap_or_default();
    let name = file.rsplit('/').next().unwrap_or_default();
    format!("{name}:{}", frame["line"].as_u64().unwrap_or_default())
}

/// The lines of frames that have one.
fn known_lines(frames: &[Value]) -> Vec<String> {
    frames.iter().map(line).filter(|line| line != ":0").collect()
}

fn frames<'s>(stacks: &'s [Stack], name: &str) -> &'s [Value] {
    &stacks.iter().find(|stack| stack.0 == name).unwrap_or_else(|| panic!("{name}")).1
}

/// The lines of `Lines.cs` that stacks have, the innermost first.
const LINES: [(&str, &[&str]); 7] = [
    ("loop", &["Lines.cs:56"]),
    ("iterator", &["Lines.cs:56", "Lines.cs:77"]),
    ("async", &["Lines.cs:56", "Lines.cs:85"]),
    ("local", &["Lines.cs:56", "Lines.cs:99", "Lines.cs:96"]),
    ("handler", &["Lines.cs:111"]),
    ("moved", &["Elsewhere.cs:7"]),
    ("parked", &["Lines.cs:37"]),
];

fn has_known_lines(stacks: &[Stack]) {
    for (name, lines) in LINES {
        assert_eq!(known_lines(frames(stacks, name)), lines, "{name}");
    }
}

/// Each frame has the IL offset and the line that the runtime finds. .NET Core 3.1 looks up the address after
/// a call, where the next statement begins.
fn compare(rows: &[Row], stacks: &[Stack], is_exact: bool) {
    assert_eq!(stacks.len(), rows.len());
    let mut unknown = Vec::new();
    for row in rows {
        let frames = frames(stacks, &row.name);
        for (index, (token, il)) in row.offsets.iter().enumerate() {
            let frame = &frames[index];
            assert_eq!(frame["token"], **token, "{} {index}: {frames:#?}", row.name);
            if is_exact {
                assert_eq!(line(frame), row.lines[index], "{} {index}: {frame}", row.name);
            }
            match frame["il_offset"].as_u64() {
                Some(found) if is_exact => assert_eq!(found, *il, "{} {index}: {frame}", row.name),
                Some(found) => assert!(found <= *il, "{} {index}: {il}, {frame}", row.name),
                // The runtime says 0 for code that throws for several statements.
                None => unknown.push((row.name.clone(), *il)),
            }
        }
    }
    assert_eq!(unknown, [("index".to_owned(), 0)]);
}

/// The method that stays at its `await` has the line of it, by the source.
fn has_line_of_await(source: &[&str]) {
    let text = fs::read_to_string(lines_folder().join("Lines.cs")).unwrap();
    let number = text.lines().position(|line| line.contains("await Task.Yield()")).unwrap() + 1;
    let chains = run([&["async"], source, &["--format", "json"]].concat()).with_code(0).json();
    let groups = chains["groups"].as_array().unwrap().iter();
    let mut links = groups.flat_map(|group| group["links"].as_array().unwrap());
    let link = links.find(|link| link["method"] == "Lines.Later").unwrap_or_else(|| panic!("{chains:#}"));
    assert_eq!((&link["file"], &link["line"]), (&"/_/Lines.cs".into(), &number.into()), "{link}");
    let shown = run([&["async"], source].concat()).with_code(0).text();
    assert!(shown.contains(&format!("  Lines.Later, await 0 in Lines.cs:line {number}\n")), "{shown}");
}

fn frames_have_the_offsets_and_lines_that_the_runtime_finds(runtime: Runtime) {
    let Some((target, rows)) = start(runtime, &lines_folder()) else { return };
    let stacks = stacks(&target.pid().to_string());
    compare(&rows, &stacks, runtime != Runtime::Net3_1);
    has_known_lines(&stacks);
    has_line_of_await(&["-p", &target.pid().to_string()]);
}
on_runtimes!(frames_have_the_offsets_and_lines_that_the_runtime_finds: net_3_1, net_8_0, net_9_0);

/// The optimised `Lines.dll` that embeds its PDB, which memory has.
fn lines_are_those_of_an_embedded_pdb(runtime: Runtime) {
    let Some((target, rows)) = start(runtime, &lines_folder().join("embedded")) else { return };
    let stacks = stacks(&target.pid().to_string());
    compare(&rows, &stacks, runtime != Runtime::Net3_1);
    assert_eq!(known_lines(frames(&stacks, "handler")).len(), 1);
    has_line_of_await(&["-p", &target.pid().to_string()]);
}
on_runtimes!(lines_are_those_of_an_embedded_pdb: net_3_1, net_8_0, net_9_0);

fn other_pdbs_are_not_used(runtime: Runtime) {
    let folder = tempfile::tempdir().unwrap();
    let pdb = folder.path().join("Lines.pdb");
    fs::copy(lines_folder().join("Lines.dll"), folder.path().join("Lines.dll")).unwrap();
    let Some((target, _)) = start(runtime, folder.path()) else { return };
    let pid = target.pid().to_string();
    let shown = |arguments: &[&str]| {
        let command = ["dump", "analyze", "-p", &pid, "stacks"].into_iter().chain(arguments.iter().copied());
        let shown = run(command).with_code(0);
        let has_line = shown.text().contains("Lines.Caught(string, Action) in Lines.cs:line 37\n");
        (has_line, shown.stderr.matches("is of another build").count())
    };
    assert_eq!(shown(&[]), (false, 0));
    // In a folder of the user's.
    let symbols = lines_folder();
    let symbols = ["--symbol-path", symbols.to_str().unwrap()];
    assert_eq!(shown(&symbols), (true, 0));
    // Another id, cut off in each place, and no PDB at all.
    let whole = fs::read(lines_folder().join("Lines.pdb")).unwrap();
    let id = [0x11, 0x3f, 0x52, 0xa1];
    let at = whole.windows(4).position(|bytes| bytes == id).unwrap();
    let mut other = whole.clone();
    other[at] ^= 1;
    fs::write(&pdb, &other).unwrap();
    assert_eq!(shown(&[]), (false, 1));
    assert_eq!(shown(&symbols), (true, 0));
    for length in [0, 1, 16, at + 8, whole.len() / 2] {
        fs::write(&pdb, &whole[..length]).unwrap();
        assert_eq!(shown(&[]), (false, 0), "{length}");
    }
    fs::write(&pdb, &whole).unwrap();
    assert_eq!(shown(&[]), (true, 0));
    let exact = run(["stack", "--exact", "-p", &pid]).with_code(0);
    assert!(exact.text().contains(" in Lines.cs:line 37\n"), "{}", exact.text());
}
on_runtimes!(other_pdbs_are_not_used: net_8_0);

/// Core dumps have the maps of the frames of their stacks.
fn core_dumps_have_lines(runtime: Runtime) {
    let Some((target, _)) = start(runtime, &lines_folder()) else { return };
    let folder = tempfile::tempdir().unwrap();
    for kind in ["mini", "heap", "full"] {
        let core = folder.path().join(kind);
        let core = core.to_str().unwrap();
        let pid = target.pid().to_string();
        run(["dump", "-p", &pid, "--stream", "--type", kind, "-o", core]).with_code(0);
        let text = run(["dump", "analyze", core, "stacks"]).with_code(0).text();
        assert!(text.contains("Lines.Caught(string, Action) in Lines.cs:line 37\n"), "{kind}: {text}");
        if kind != "mini" {
            has_line_of_await(&[core]);
        }
    }
}
on_runtimes!(core_dumps_have_lines: net_3_1, net_8_0, net_9_0);

/// The PDB is one of the files of a program that was published as a single file.
#[test]
fn lines_are_those_of_a_pdb_in_a_single_file() {
    let Some(program) = program_of_8_with_pdb("lines/Lines.dll") else { return };
    let target = Target::start(program);
    assert_eq!(target.line(), "ready");
    let source = fs::read_to_string(lines_folder().join("Lines.cs")).unwrap();
    let number = source.lines().position(|line| line.contains("Console.ReadLine()")).unwrap() + 1;
    let pid = target.pid().to_string();
    let core = tempfile::NamedTempFile::new().unwrap();
    let core = core.path().to_str().unwrap();
    run(["dump", "-p", &pid, "--stream", "-o", core]).with_code(0);
    for source in [&["-p", &*pid][..], &[core]] {
        let text = run([&["dump", "analyze"], source, &["stacks"]].concat()).with_code(0).text();
        assert!(text.contains(&format!("Lines.Main() in Lines.cs:line {number}\n")), "{text}");
    }
}
