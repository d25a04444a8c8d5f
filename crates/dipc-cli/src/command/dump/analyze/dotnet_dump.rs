//! Command lines of dotnet-dump in the words of the views.

use std::ffi::OsString;

use clap::Parser as _;

use super::{ViewLine, names};
use crate::exit::Failure;

/// Separates the words of a command that was passed as several arguments.
pub(super) const SEPARATOR: char = '\u{1f}';

/// Commands that lead to a view.
const COMMANDS: [&str; 30] = [
    "clrmodules",
    "clrstack",
    "clrthreads",
    "da",
    "do",
    "dumparray",
    "dumpasync",
    "dumpgen",
    "dumpheap",
    "dumpobj",
    "eeheap",
    "finalizequeue",
    "gchandles",
    "gcheapstat",
    "gcroot",
    "gcwhere",
    "lm",
    "maddress",
    "parallelstacks",
    "pe",
    "printexception",
    "pstacks",
    "syncblk",
    "modules",
    "threadpool",
    "threadpoolqueue",
    "threads",
    "ti",
    "timerinfo",
    "tpq",
];

/// Options of `dump analyze` that have a value.
const OPTIONS: [&str; 9] =
    ["-p", "--process-id", "-n", "--name", "--endpoint", "--format", "-c", "--command", "--diagnostic-port"];

/// Makes a command of dotnet-dump one option: its flags, as `-all`, would be several ones of dipc.
pub(crate) fn join_command(mut words: Vec<OsString>) -> Vec<OsString> {
    let text = |word: &OsString| word.to_str().unwrap_or_default().to_owned();
    let analyze = words.windows(2).position(|pair| pair[0] == "dump" && pair[1] == "analyze");
    let Some(first) = analyze.map(|at| at + 2) else { return words };
    let mut has_source = false;
    let mut at = first;
    while at < words.len() {
        let word = text(&words[at]);
        if word.starts_with('-') && word.len() > 1 {
            let name = word.split('=').next().unwrap_or_default();
            has_source |= OPTIONS[..5].contains(&name);
            at += if OPTIONS.contains(&&*word) { 2 } else { 1 };
        } else if has_source {
            let name = word.to_lowercase();
            let flags = words[at + 1..].iter().any(|word| {
                let word = text(word);
                word.starts_with('-') && !word.starts_with("--")
            });
            let is_view = matches!(&*name, "modules" | "threadpool" | "threads");
            if COMMANDS.contains(&&*name) && (flags || !is_view) {
                let rest: Vec<String> = words.drain(at..).map(|word| text(&word)).collect();
                let command = rest.join(&SEPARATOR.to_string());
                words.push(format!("--command={command}").into());
            }
            return words;
        } else {
            has_source = true;
            at += 1;
        }
    }
    words
}

/// Views that have the same name here; their own flags begin with two dashes.
const OWN: [&str; 22] = [
    "threads",
    "stacks",
    "exceptions",
    "heap",
    "generations",
    "finalizers",
    "paths",
    "objects",
    "object",
    "strings",
    "statics",
    "handles",
    "memory",
    "locks",
    "async",
    "modules",
    "tasks",
    "threadpool",
    "timers",
    "channels",
    "requests",
    "help",
];

/// The words of a view for the words of a command, in any case, with its common flags.
pub(super) fn translate(words: &[String]) -> Result<Vec<String>, Failure> {
    let name = words.first().map(|name| name.to_lowercase()).unwrap_or_default();
    let rest = words.get(1..).unwrap_or_default();
    let line = Line::new(&name, rest);
    if OWN.contains(&&*name) {
        // A flag with one dash is the view's, if it has it, and else of dotnet-dump.
        let words = [std::slice::from_ref(&name), rest].concat();
        if line.flags.is_empty() || ViewLine::try_parse_from(&words).is_ok() {
            return Ok(words);
        }
    }
    for view in [of_threads, of_pool, of_objects, of_generations, of_memory] {
        if let Some(words) = view(&line)? {
            return Ok(words);
        }
    }
    Err(names::unknown(&name))
}

/// Commands about threads and modules; `None` for others.
fn of_threads(line: &Line<'_>) -> Result<Option<Vec<String>>, Failure> {
    Ok(Some(match line.name {
        "clrstack" | "parallelstacks" | "pstacks" | "stacks" => {
            // -a is "all threads" of pstacks, and "arguments and local variables" of clrstack.
            let is_parallel = matches!(line.name, "parallelstacks" | "pstacks");
            let variables = if is_parallel { LOCALS } else { AS_EVER };
            line.check(&[
                ("-all", AS_EVER),
                ("-f", AS_EVER),
                ("-a", AS_EVER),
                ("-l", variables),
                ("-p", variables),
                ("-gc", "paths shows the objects that frames hold, with the place of each in its frame"),
                ("-r", "registers are not shown; stacks --native begins with the instruction pointer"),
            ])?;
            line.check_values(0)?;
            let has_all = !is_parallel && line.has("-a");
            let mut flags = Vec::new();
            for (flag, is_there) in [
                ("--native", line.has("-f")),
                ("--arguments", has_all || line.has("-p")),
                ("--locals", has_all || line.has("-l")),
            ] {
                flags.extend(is_there.then(|| flag.to_owned()));
            }
            line.view("stacks", flags)
        }
        "clrthreads" | "threads" => {
            line.check(&[
                ("-live", AS_EVER),
                ("-managedexception", "dump analyze CORE exceptions shows the exceptions of threads"),
            ])?;
            line.check_values(0)?;
            line.view("threads", line.has("-live").then(|| "--live".to_owned()))
        }
        "pe" | "printexception" | "exceptions" => {
            line.check(&[("-nested", AS_EVER), ("-lines", AS_EVER), ("-ccw", "there is no COM on Linux")])?;
            line.check_values(1)?;
            line.view("exceptions", line.address())
        }
        "syncblk" | "locks" => {
            line.check(&[("-all", "only monitors that are held or waited for are shown")])?;
            line.check_values(0)?;
            line.view("locks", None)
        }
        "lm" | "clrmodules" | "modules" => {
            const ALL: &str = "all modules are shown, one per line, with address, size and path";
            line.check(&[("-verbose", ALL), ("-name", ALL), ("-segment", ALL)])?;
            line.check_values(0)?;
            line.view("modules", None)
        }
        _ => return Ok(None),
    }))
}

/// Commands about the thread pool and timers; `None` for others.
fn of_pool(line: &Line<'_>) -> Result<Option<Vec<String>>, Failure> {
    Ok(Some(match line.name {
        "threadpool" => {
            line.check(&[("-ti", AS_EVER), ("-wi", AS_EVER), ("-live", AS_EVER)])?;
            line.check_values(0)?;
            line.view("threadpool", None)
        }
        "threadpoolqueue" | "tpq" => {
            line.check(&[])?;
            line.check_values(0)?;
            line.view("threadpool", None)
        }
        "timerinfo" | "ti" | "timers" => {
            line.check(&[])?;
            line.check_values(0)?;
            line.view("timers", None)
        }
        _ => return Ok(None),
    }))
}

/// Commands about objects; `None` for others.
fn of_objects(line: &Line<'_>) -> Result<Option<Vec<String>>, Failure> {
    Ok(Some(match line.name {
        "dumpheap" | "heap" => heap(line)?,
        "do" | "dumpobj" | "object" => {
            line.check(&[
                ("-nofields", "the fields are always shown"),
                ("-refs", "the fields show the references; paths --object ADDRESS shows what keeps it alive"),
            ])?;
            line.check_values(1)?;
            line.view("object", line.address())
        }
        "da" | "dumparray" => {
            line.check(&[
                ("-length", AS_EVER),
                ("-start", "the elements are shown from the first on: -length N shows more of them"),
                ("-details", "object ADDRESS shows an element"),
                ("-nofields", "the elements are always shown"),
            ])?;
            line.check_values(1)?;
            let head = line.value("-length").map(|count| format!("--head={count}"));
            line.view("object", line.address().into_iter().chain(head))
        }
        "gcroot" | "paths" => {
            line.check(&[
                ("-all", AS_EVER),
                (
                    "-nostacks",
                    "each path begins with the kind of its root: leave out the paths of local variables",
                ),
            ])?;
            line.check_values(1)?;
            let object = line.address().map(|address| format!("--object={address}"));
            let all = line.has("-all").then(|| "--head=1000".to_owned());
            line.view("paths", object.into_iter().chain(all))
        }
        "dumpasync" | "async" => {
            const TYPES: &str = "dump analyze CORE tasks --all shows all tasks, by state and method";
            line.check(&[
                ("-type", AS_EVER),
                ("-coalesce", AS_EVER),
                ("-stacks", AS_EVER),
                ("-waiting", AS_EVER),
                ("-stats", "equal chains are counted once, with their number"),
                ("-tasks", TYPES),
                ("-completed", TYPES),
                ("-roots", "paths --object ADDRESS shows what keeps an object alive"),
            ])?;
            line.check_values(0)?;
            line.view("async", line.value("-type").map(|of| format!("--type={of}")))
        }
        "gchandles" | "handles" => {
            const KINDS: &str = "the table has a row for each kind and type; --format json has each handle";
            line.check(&[("-stat", AS_EVER), ("-type", KINDS), ("-perdomain", KINDS)])?;
            line.check_values(0)?;
            line.view("handles", None)
        }
        _ => return Ok(None),
    }))
}

/// Commands about the generations of the heap and its finalizers; `None` for others.
fn of_generations(line: &Line<'_>) -> Result<Option<Vec<String>>, Failure> {
    Ok(Some(match line.name {
        "eeheap" | "generations" => {
            line.check(&[("-gc", AS_EVER), ("-loader", AS_EVER)])?;
            line.check_values(0)?;
            if line.has("-loader") { with_parts(line) } else { line.view("generations", None) }
        }
        "gcheapstat" => {
            line.check(&[("-unreachable", UNREACHED), ("-inclunrooted", UNREACHED), ("-iu", UNREACHED)])?;
            line.check_values(0)?;
            line.view("generations", None)
        }
        "gcwhere" => {
            line.check(&[])?;
            line.check_values(1)?;
            let address = line.address().ok_or_else(|| {
                Failure::usage("gcwhere: no address").with_help("generations shows the whole heap")
            })?;
            line.view("generations", [address])
        }
        "dumpgen" => {
            line.check(&[("-type", AS_EVER), ("-mt", OF_TYPE)])?;
            line.check_values(1)?;
            let generation = line.address().ok_or_else(|| {
                Failure::usage("dumpgen: no generation").with_help("dumpgen 2 shows generation 2")
            })?;
            of_generation(line, &generation)
        }
        "finalizequeue" | "finalizers" => {
            line.check(&[
                ("-stat", AS_EVER),
                ("-summary", AS_EVER),
                ("-detail", "wrappers of COM objects do not exist on Linux"),
                ("-allready", UNREACHED),
                (
                    "-short",
                    "dump analyze CORE objects --type TYPE --format json has the address of each object",
                ),
                ("-mt", OF_TYPE),
            ])?;
            line.check_values(0)?;
            line.view("finalizers", None)
        }
        _ => return Ok(None),
    }))
}

/// Commands about all memory of the process; `None` for others.
fn of_memory(line: &Line<'_>) -> Result<Option<Vec<String>>, Failure> {
    const RESERVED: &str = "dump analyze CORE memory --parts has the addresses of each part, reserved or not";
    Ok(Some(match line.name {
        "maddress" | "memory" => {
            line.check(&[
                ("-summary", AS_EVER),
                ("-stat", AS_EVER),
                ("-images", AS_EVER),
                ("-orderbysize", AS_EVER),
                ("-forcehandletable", AS_EVER),
                ("-reserve", RESERVED),
                ("-reserveheuristic", RESERVED),
                ("-list", "dump analyze CORE memory --format json has the parts of each owner"),
            ])?;
            line.check_values(0)?;
            let is_summary = line.has("-summary") || line.has("-stat");
            if is_summary { line.view("memory", None) } else { with_parts(line) }
        }
        _ => return Ok(None),
    }))
}

/// The memory by its owners, with their parts.
fn with_parts(line: &Line<'_>) -> Vec<String> {
    line.view("memory", ["--parts".to_owned()])
}

/// The objects of a generation: by type, or those of the type after -type.
fn of_generation(line: &Line<'_>, generation: &str) -> Vec<String> {
    let generation = format!("--generation={}", generation.to_lowercase());
    match line.value("-type") {
        Some(of) => {
            let head = line.has("-stat").then(|| "--head=10".to_owned());
            line.view("objects", [format!("--type={of}"), generation].into_iter().chain(head))
        }
        None => line.view("heap", [generation]),
    }
}

/// A flag that changes nothing, because the view is always so, or that the view has too.
const AS_EVER: &str = "";
/// The help for flags that show variables.
const LOCALS: &str = "clrstack -a shows the arguments and local variables of each thread's frames";

/// The flags of `dumpheap`.
const OF_HEAP: [(&str, &str); 13] = [
    ("-stat", AS_EVER),
    ("-type", AS_EVER),
    ("-strings", AS_EVER),
    ("-gen", AS_EVER),
    ("-mt", OF_TYPE),
    ("-min", SIZES),
    ("-max", SIZES),
    ("-heap", HEAPS),
    ("-segment", HEAPS),
    ("-live", UNREACHED),
    ("-dead", UNREACHED),
    ("-thinlock", "dump analyze CORE locks shows the monitors that are held"),
    ("-short", "dump analyze CORE objects --type TYPE --format json has the address of each object"),
];
const OF_TYPE: &str = "dump analyze CORE objects --type TYPE lists the objects of a type, by its name";
const HEAPS: &str =
    "dump analyze CORE generations shows the generations of each heap of a server's collector";
const SIZES: &str = "dump analyze CORE objects --type TYPE has the bytes of each object";
const UNREACHED: &str = "dump analyze CORE heap says how many objects no root reaches";

/// `dumpheap` shows types with -stat, and otherwise the objects of a type.
fn heap(line: &Line<'_>) -> Result<Vec<String>, Failure> {
    line.check(&OF_HEAP)?;
    line.check_values(0)?;
    let of = line.value("-type");
    if line.has("-strings") {
        let other = ["-type", "-gen"].into_iter().find(|flag| line.has(flag));
        return match other {
            None => Ok(line.view("strings", None)),
            Some(flag) => Err(line.refuse(flag, "-strings shows the strings of the whole heap")),
        };
    }
    if let Some(generation) = line.value("-gen") {
        return Ok(of_generation(line, generation));
    }
    Ok(match of {
        Some(of) => {
            let head = line.has("-stat").then(|| "--head=10".to_owned());
            line.view("objects", [format!("--type={of}")].into_iter().chain(head))
        }
        None => line.view("heap", None),
    })
}

/// A command with its flags and values.
struct Line<'w> {
    name: &'w str,
    /// Flags in lower case with one dash, and the word after each.
    flags: Vec<(String, Option<&'w str>)>,
    /// Other words.
    values: Vec<&'w str>,
    /// Flags of dipc, with their values.
    own: Vec<String>,
}

/// Flags of dotnet-dump that may begin with two dashes, except flags of views.
const WITH_TWO_DASHES: [&str; 11] = [
    "--all",
    "--coalesce",
    "--completed",
    "--gc",
    "--loader",
    "--roots",
    "--stacks",
    "--stat",
    "--stats",
    "--tasks",
    "--waiting",
];

/// Flags that have a value.
const WITH_VALUE: [&str; 11] =
    ["-type", "-mt", "-min", "-max", "-length", "-start", "-gen", "-heap", "-name", "-segment", "-os"];

impl<'w> Line<'w> {
    fn new(name: &'w str, words: &'w [String]) -> Self {
        let mut line = Self { name, flags: Vec::new(), values: Vec::new(), own: Vec::new() };
        let mut words = words.iter().map(|word| &**word).peekable();
        while let Some(word) = words.next() {
            let lower = word.to_lowercase();
            let is_of_dipc = lower.starts_with("--") && !WITH_TWO_DASHES.contains(&&*lower);
            if is_of_dipc {
                line.own.push(word.to_owned());
                let value = words.next_if(|next| !next.starts_with('-') && !word.contains('='));
                line.own.extend(value.map(ToOwned::to_owned));
            } else if lower.starts_with('-') && lower.len() > 1 {
                let flag = lower.trim_start_matches('-');
                let flag = format!("-{flag}");
                let value = if WITH_VALUE.contains(&&*flag) { words.next() } else { None };
                line.flags.push((flag, value));
            } else {
                line.values.push(word);
            }
        }
        line
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(own, _)| own == flag)
    }

    fn value(&self, flag: &str) -> Option<&str> {
        self.flags.iter().find(|(own, _)| own == flag)?.1
    }

    /// The first value: an address.
    fn address(&self) -> Option<String> {
        self.values.first().map(|value| (*value).to_owned())
    }

    /// Fails for a flag that is not among these, that has a help with an alternative, or that lacks its
    /// value.
    fn check(&self, flags: &[(&str, &str)]) -> Result<(), Failure> {
        for (flag, value) in &self.flags {
            match flags.iter().find(|(known, _)| known == flag) {
                Some((_, "")) if value.is_none() && WITH_VALUE.contains(&&**flag) => {
                    return Err(Failure::usage(format_args!("{} {flag}: a value is missing", self.name)));
                }
                Some((_, "")) => {}
                Some((_, help)) => return Err(self.refuse(flag, help)),
                None => {
                    let known = flags.iter().filter(|(_, help)| help.is_empty()).map(|(flag, _)| *flag);
                    let known: Vec<_> = known.collect();
                    let help = match &known[..] {
                        [] => format!("'{}' takes no flags of dotnet-dump here", self.name),
                        known => format!("of dotnet-dump's flags, '{}' takes {}", self.name, known.join(" ")),
                    };
                    let failure =
                        Failure::usage(format_args!("{} {flag}: not a flag that dipc knows", self.name));
                    return Err(failure.with_help(help));
                }
            }
        }
        Ok(())
    }

    /// The failure for a flag of dotnet-dump that does nothing here.
    fn refuse(&self, flag: &str, help: &str) -> Failure {
        Failure::usage(format_args!("{} {flag}: dipc does not have this flag of dotnet-dump", self.name))
            .with_help(help)
    }

    /// Fails for more values than this.
    fn check_values(&self, most: usize) -> Result<(), Failure> {
        match self.values.get(most) {
            Some(value) => Err(Failure::usage(format_args!("{} {value}: one word too many", self.name))
                .with_help(match most {
                    0 => format!("'{}' shows all of them, and takes no address or number", self.name),
                    _ => format!("'{}' takes one address", self.name),
                })),
            None => Ok(()),
        }
    }

    fn view(&self, view: &str, words: impl IntoIterator<Item = String>) -> Vec<String> {
        [view.to_owned()].into_iter().chain(words).chain(self.own.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
        match translate(&words) {
            Ok(words) => words.join(" "),
            Err(failure) => format!("{failure}; {}", failure.help.as_deref().unwrap_or_default()),
        }
    }

    #[test]
    fn commands_lead_to_views_with_their_flags() {
        for (line, expected) in [
            ("CLRStack -all", "stacks"),
            ("clrstack -f", "stacks --native"),
            ("clrstack -all --format json", "stacks --format json"),
            ("clrstack -a", "stacks --arguments --locals"),
            ("clrstack -p -f", "stacks --native --arguments"),
            ("clrstack -l", "stacks --locals"),
            ("threads -live", "threads --live"),
            ("threads --format json", "threads --format json"),
            ("pe", "exceptions"),
            ("PrintException -nested 00007f00", "exceptions 00007f00"),
            ("pstacks -a", "stacks"),
            ("dumpheap -stat", "heap"),
            ("dumpheap -stat --head 200", "heap --head 200"),
            ("DumpHeap -type Shop.Row", "objects --type=Shop.Row"),
            ("dumpheap -stat -type Row", "objects --type=Row --head=10"),
            ("dumpheap -strings", "strings"),
            ("dumpheap -stat -gen 2", "heap --generation=2"),
            ("dumpheap -gen LOH --rows 5", "heap --generation=loh --rows 5"),
            ("dumpheap -gen gen0 -type Row", "objects --type=Row --generation=gen0"),
            ("dumpgen poh", "heap --generation=poh"),
            ("dumpgen gen2 -type Row", "objects --type=Row --generation=gen2"),
            ("eeheap -gc", "generations"),
            ("eeheap --gc", "generations"),
            ("eeheap -loader", "memory --parts"),
            ("eeheap -gc --loader --rows 5", "memory --parts --rows 5"),
            ("maddress", "memory --parts"),
            ("MAddress -summary", "memory"),
            ("memory --rows 5", "memory --rows 5"),
            ("GCHeapStat", "generations"),
            ("gcwhere 7f00", "generations 7f00"),
            ("generations 7f00", "generations 7f00"),
            ("finalizequeue -stat", "finalizers"),
            ("do 7f00", "object 7f00"),
            ("dumparray -length 5 7f00", "object 7f00 --head=5"),
            ("gcroot -all 7f00", "paths --object=7f00 --head=1000"),
            ("syncblk", "locks"),
            ("dumpasync -coalesce -type Mail", "async --type=Mail"),
            ("gchandles -stat", "handles"),
            ("lm", "modules"),
            ("object 7f00", "object 7f00"),
            ("heap --rows 3", "heap --rows 3"),
            ("objects --type Row -n 3", "objects --type Row -n 3"),
            ("tasks --all", "tasks --all"),
            ("requests -n 3", "requests -n 3"),
        ] {
            assert_eq!(translated(line), expected, "{line}");
        }
    }

    #[test]
    fn a_command_becomes_one_option() {
        for (line, expected) in [
            ("dipc dump analyze core clrstack -all", "dipc dump analyze core --command=clrstack|-all"),
            (
                "dipc -q dump analyze -p 7 DumpAsync --type T",
                "dipc -q dump analyze -p 7 --command=DumpAsync|--type|T",
            ),
            ("dipc dump analyze --format json core pe", "dipc dump analyze --format json core --command=pe"),
            ("dipc dump analyze core threads --format json", "dipc dump analyze core threads --format json"),
            ("dipc dump analyze core threads -live", "dipc dump analyze core --command=threads|-live"),
            ("dipc dump analyze do", "dipc dump analyze do"),
            ("dipc dump analyze core stacks", "dipc dump analyze core stacks"),
            ("dipc dump -p 7", "dipc dump -p 7"),
        ] {
            let joined = join_command(line.split(' ').map(OsString::from).collect());
            let words: Vec<_> = joined.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(words.join(" ").replace(SEPARATOR, "|"), expected);
        }
    }

    /// None of them is accepted to do nothing.
    #[test]
    fn rejects_unsupported_flags_by_name_with_an_alternative() {
        for (command, flags) in [
            ("clrstack", "-r -gc"),
            ("pstacks", "-l -p -r"),
            ("clrthreads", "-managedexception"),
            ("pe", "-ccw"),
            ("dumpheap", "-mt -min -max -heap -segment -live -dead -thinlock -short"),
            ("dumpheap -type T", "-min -heap -short"),
            ("dumpheap -strings", "-gen -type"),
            ("dumpgen 2", "-mt"),
            ("maddress", "-list -reserve -reserveHeuristic"),
            ("gcheapstat", "-unreachable -inclUnrooted -iu"),
            ("finalizequeue", "-detail -allReady -short -mt"),
            ("do", "-nofields -refs"),
            ("da", "-start -details -nofields"),
            ("gcroot", "-nostacks"),
            ("syncblk", "-all"),
            ("dumpasync", "--stats -tasks -completed -roots"),
            ("gchandles", "-type -perdomain"),
            ("lm", "-verbose -name -segment"),
        ] {
            for flag in flags.split(' ') {
                let said = translated(&format!("{command} {flag} 2"));
                let flag = flag.trim_start_matches('-').to_lowercase();
                let name = command.split(' ').next().unwrap();
                let expected = format!("{name} -{flag}: dipc does not have this flag of dotnet-dump; ");
                assert!(said.starts_with(&expected) && said.len() > expected.len() + 10, "{said}");
            }
        }
    }

    /// Every flag of the commands that lead to views, by the help texts of dotnet-dump 9 and 10.
    const FLAGS: [(&str, &str); 19] = [
        ("clrstack", "-a -all -f -gc -l -n -p -r"),
        ("pstacks", "-a -all"),
        ("clrthreads", "-live -special -managedexception"),
        ("pe", "-ccw -lines -nested"),
        ("syncblk", "-all"),
        ("threadpool", "-live -ti -wi"),
        ("clrmodules", "-name -segment -verbose"),
        (
            "dumpheap",
            "-dead -gen -heap -ignoreGCState -live -max -min -mt -segment -short -stat -strings -thinlock -type",
        ),
        ("dumpheap -type T", "-dead -gen -heap -live -max -min -mt -segment -short -stat -strings -thinlock"),
        ("dumpgen 2", "-mt -type"),
        ("eeheap", "-gc -loader --gc --loader"),
        ("gcheapstat", "-inclUnrooted -iu -unreachable"),
        ("finalizequeue", "-allReady -detail -mt -short -stat -summary"),
        ("dumpobj 7f00", "-nofields -refs"),
        ("dumparray 7f00", "-details -length -nofields -start"),
        ("gcroot 7f00", "-all -gcgen -nostacks"),
        (
            "dumpasync",
            "-addr -coalesce -completed -fields -mt -roots -stacks -stats -tasks -type -waiting --coalesce --stacks",
        ),
        ("gchandles", "-perdomain -stat -type"),
        (
            "maddress",
            "-forceHandleTable -images -list -orderBySize -reserve -reserveHeuristic -stat -summary",
        ),
    ];
    /// Flags that say what the views are in any case.
    const ALWAYS: [(&str, &str); 10] = [
        ("clrstack", "-all"),
        ("pstacks", "-a -all"),
        ("pe", "-lines -nested"),
        ("threadpool", "-live -ti -wi"),
        ("dumpheap", "-stat"),
        ("eeheap", "-gc --gc"),
        ("finalizequeue", "-stat -summary"),
        ("dumpasync", "-coalesce -stacks -waiting --coalesce --stacks"),
        ("gchandles", "-stat"),
        ("maddress", "-forceHandleTable -images -orderBySize"),
    ];

    #[test]
    fn no_flag_of_a_command_is_ignored() {
        for (command, flags) in FLAGS {
            let plain = translated(command);
            let always = ALWAYS.iter().filter(|(of, _)| *of == command);
            let always: Vec<_> = always.flat_map(|(_, flags)| flags.split(' ')).collect();
            for flag in flags.split(' ') {
                let value = if WITH_VALUE.contains(&flag) { " 2" } else { "" };
                let said = translated(&format!("{command} {flag}{value}"));
                let lower = flag.trim_start_matches('-').to_lowercase();
                let is_refused = said.contains(&format!(" -{lower}: ")) && said.contains("; ");
                assert!(
                    is_refused || (said != plain) != always.contains(&flag),
                    "{command} {flag}: {said}; without it: {plain}"
                );
                if !value.is_empty() {
                    let without = translated(&format!("{command} {flag}"));
                    assert!(without.contains(&format!(" -{lower}: ")), "{command} {flag}: {without}");
                }
            }
        }
    }

    #[test]
    fn commands_and_flags_without_a_view_are_explained() {
        for (line, expected) in [
            ("gcwhere", "gcwhere: no address; generations shows the whole heap"),
            ("dumpheap -gen", "dumpheap -gen: a value is missing"),
            ("dumpgen", "dumpgen: no generation; dumpgen 2 shows generation 2"),
            (
                "threads -special",
                "threads -special: not a flag that dipc knows; of dotnet-dump's flags, 'threads' takes -live",
            ),
            ("lm -i", "lm -i: not a flag that dipc knows; 'lm' takes no flags of dotnet-dump here"),
            ("syncblk 7", "syncblk 7: one word too many; 'syncblk' shows all of them"),
            ("gcroot 7f00 7f08", "gcroot 7f08: one word too many; 'gcroot' takes one address"),
            ("ip2md 7f00", "no view is called 'ip2md'; dump analyze CORE stacks"),
            ("clrma", "no view is called 'clrma'; "),
            ("nonsense", "no view is called 'nonsense'; dipc dump analyze --help"),
        ] {
            assert!(translated(line).contains(expected), "{line}: {}", translated(line));
        }
    }
}
