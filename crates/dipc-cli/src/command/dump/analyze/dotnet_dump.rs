//! Command lines of dotnet-dump in the words of the views.

use std::ffi::OsString;

use super::names;
use crate::exit::Failure;

/// The character between the words of a command that came as words.
pub(super) const SEPARATOR: char = '\u{1f}';

/// Commands that lead to a view.
const COMMANDS: [&str; 19] = [
    "clrmodules",
    "clrstack",
    "clrthreads",
    "da",
    "do",
    "dumparray",
    "dumpasync",
    "dumpheap",
    "dumpobj",
    "gchandles",
    "gcroot",
    "lm",
    "parallelstacks",
    "pe",
    "printexception",
    "pstacks",
    "syncblk",
    "modules",
    "threads",
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
            let is_view = matches!(&*name, "modules" | "threads");
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
const OWN: [&str; 14] = [
    "threads",
    "stacks",
    "exceptions",
    "heap",
    "paths",
    "objects",
    "object",
    "strings",
    "statics",
    "handles",
    "locks",
    "async",
    "modules",
    "help",
];

/// The words of a view for the words of a command, in any case, with its common flags.
pub(super) fn translate(words: &[String]) -> Result<Vec<String>, Failure> {
    let name = words.first().map(|name| name.to_lowercase()).unwrap_or_default();
    let rest = words.get(1..).unwrap_or_default();
    let line = Line::new(&name, rest);
    let is_own = OWN.contains(&&*name) && line.flags.is_empty();
    Ok(match &*name {
        _ if is_own => [&[name], rest].concat(),
        "clrstack" | "parallelstacks" | "pstacks" | "stacks" => {
            line.check(&["-all", "-a", "-l", "-p", "-f", "-r", "-c", "-clrstack"])?;
            let native = line.has("-f").then(|| "--native".to_owned());
            line.view("stacks", native)
        }
        "clrthreads" | "threads" => {
            line.check(&["-live", "-managedexception"])?;
            line.view("threads", line.has("-live").then(|| "--live".to_owned()))
        }
        "pe" | "printexception" | "exceptions" => {
            line.check(&["-nested", "-lines", "-ccw"])?;
            line.view("exceptions", line.address())
        }
        "dumpheap" | "heap" => heap(&line)?,
        "do" | "dumpobj" | "object" => {
            line.check(&["-nofields", "-refs"])?;
            line.view("object", line.address())
        }
        "da" | "dumparray" => {
            line.check(&["-length", "-details", "-nofields", "-start"])?;
            let head = line.value("-length").map(|count| format!("--head={count}"));
            line.view("object", line.address().into_iter().chain(head))
        }
        "gcroot" | "paths" => {
            line.check(&["-all", "-nostacks"])?;
            let object = line.address().map(|address| format!("--object={address}"));
            let all = line.has("-all").then(|| "--head=1000".to_owned());
            line.view("paths", object.into_iter().chain(all))
        }
        "syncblk" | "locks" => {
            line.check(&["-all"])?;
            line.view("locks", None)
        }
        "dumpasync" | "async" => {
            line.check(&[
                "-stats",
                "-tasks",
                "-completed",
                "-coalesce",
                "-stacks",
                "-waiting",
                "-roots",
                "-type",
            ])?;
            line.view("async", line.value("-type").map(|of| format!("--type={of}")))
        }
        "gchandles" | "handles" => {
            line.check(&["-stat", "-type", "-perdomain"])?;
            line.view("handles", None)
        }
        "lm" | "clrmodules" | "modules" => {
            line.check(&["-verbose", "-name", "-segment"])?;
            line.view("modules", None)
        }
        _ => return Err(names::unknown(&name)),
    })
}

/// `dumpheap` shows types with -stat, and otherwise the objects of a type.
fn heap(line: &Line<'_>) -> Result<Vec<String>, Failure> {
    if line.has("-strings") {
        return Ok(line.view("strings", None));
    }
    if let Some(of) = line.value("-type") {
        let head = line.has("-stat").then(|| "--head=10".to_owned());
        return Ok(line.view("objects", [format!("--type={of}")].into_iter().chain(head)));
    }
    if let Some(flag) =
        ["-mt", "-min", "-max", "-live", "-dead", "-thinlock"].into_iter().find(|flag| line.has(flag))
    {
        return Err(names::heap_flag(flag));
    }
    line.check(&["-stat", "-gen", "-short"])?;
    Ok(line.view("heap", None))
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

/// Flags that have a value.
const WITH_VALUE: [&str; 10] =
    ["-type", "-mt", "-min", "-max", "-length", "-start", "-gen", "-name", "-segment", "-os"];

impl<'w> Line<'w> {
    fn new(name: &'w str, words: &'w [String]) -> Self {
        let mut line = Self { name, flags: Vec::new(), values: Vec::new(), own: Vec::new() };
        let mut words = words.iter().map(|word| &**word).peekable();
        while let Some(word) = words.next() {
            let lower = word.to_lowercase();
            let is_of_dipc =
                lower.starts_with("--") && !matches!(&*lower, "--stats" | "--tasks" | "--all" | "--stat");
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

    /// Fails for a flag that is not among these.
    fn check(&self, flags: &[&str]) -> Result<(), Failure> {
        match self.flags.iter().find(|(flag, _)| !flags.contains(&&**flag)) {
            Some((flag, _)) => {
                Err(Failure::usage(format_args!("{} {flag}: not a flag that dipc knows", self.name))
                    .with_help(format_args!(
                        "of dotnet-dump's flags of '{}' these are known: {}",
                        self.name,
                        flags.join(" ")
                    )))
            }
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
            ("threads -live", "threads --live"),
            ("threads --format json", "threads --format json"),
            ("pe", "exceptions"),
            ("PrintException -nested 00007f00", "exceptions 00007f00"),
            ("dumpheap -stat", "heap"),
            ("dumpheap -stat --head 200", "heap --head 200"),
            ("DumpHeap -type Shop.Row", "objects --type=Shop.Row"),
            ("dumpheap -stat -type Row", "objects --type=Row --head=10"),
            ("dumpheap -strings", "strings"),
            ("do -nofields 7f00", "object 7f00"),
            ("dumparray -length 5 7f00", "object 7f00 --head=5"),
            ("gcroot -all 7f00", "paths --object=7f00 --head=1000"),
            ("syncblk -all", "locks"),
            ("dumpasync --stats", "async"),
            ("dumpasync -tasks", "async"),
            ("lm", "modules"),
            ("object 7f00", "object 7f00"),
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

    #[test]
    fn commands_and_flags_without_a_view_are_explained() {
        for (line, expected) in [
            (
                "threads -special",
                "threads -special: not a flag that dipc knows; of dotnet-dump's flags of 'threads'",
            ),
            ("dumpheap -mt 7f00", "dumpheap -mt: "),
            ("ip2md 7f00", "no view is called 'ip2md'; dump analyze CORE stacks"),
            ("clrma", "no view is called 'clrma'; "),
            ("nonsense", "no view is called 'nonsense'; dipc dump analyze --help"),
        ] {
            assert!(translated(line).contains(expected), "{line}: {}", translated(line));
        }
    }
}
