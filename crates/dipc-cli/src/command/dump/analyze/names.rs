//! Names of dotnet-dump's commands that have another form here.

use crate::exit::Failure;

/// Commands of dotnet-dump, with their equivalents. Commands that only have another name are aliases.
const COMMANDS: [(&str, &str); 32] = [
    ("analyzeoom", "the view 'heap' has the objects, and 'exceptions' the exception"),
    ("assemblies", "dump analyze CORE modules lists the assemblies"),
    (
        "clrma",
        "dump analyze CORE without a view shows the thread that died and why, with --format json for programs",
    ),
    ("crashinfo", "dump analyze CORE without a view shows the signal, and the thread that died"),
    ("dcd", "dump analyze CORE object ADDRESS shows the keys and values of a dictionary"),
    ("dso", "dump analyze CORE stacks shows the frames, and 'paths' the objects that local variables hold"),
    (
        "dumpclass",
        "dump analyze CORE statics --type TYPE shows static fields, and object ADDRESS the fields of an object",
    ),
    ("dumpconcurrentdictionary", "dump analyze CORE object ADDRESS shows its keys and values"),
    ("dumpexceptions", "dump analyze CORE objects --type Exception lists the exceptions of the heap"),
    ("dumpgcdata", "dipc report gc shows the collections of a recording"),
    ("dumpmd", "dump analyze CORE stacks --format json has module and token of each method"),
    ("dumpmodule", "dump analyze CORE modules lists the modules"),
    ("dumpmt", "dump analyze CORE objects --type TYPE lists the objects of a type"),
    ("dumpstack", "dump analyze CORE stacks --native shows managed and native frames"),
    ("dumpstackobjects", "dump analyze CORE paths shows the objects that local variables hold"),
    ("dumpvc", "dump analyze CORE object ADDRESS shows the structures in an object"),
    ("eestack", "dump analyze CORE stacks shows the stacks of all threads"),
    ("eeversion", "dump analyze CORE without a view shows the version of the runtime"),
    ("ip2md", "dump analyze CORE stacks --format json has the method of each address on a stack"),
    ("name2ee", "dump analyze CORE objects --type TYPE finds a type by its name"),
    ("objsize", "dump analyze CORE heap has the bytes that types retain"),
    ("pathto", "dump analyze CORE paths --object ADDRESS shows what keeps an object alive"),
    (
        "registers",
        "dump analyze CORE stacks --native begins with the instruction pointer; registers are not shown",
    ),
    ("setclrpath", "no files of the runtime are needed"),
    ("setsymbolserver", "no symbols are needed"),
    ("setthread", "dump analyze CORE stacks shows the stacks of all threads"),
    ("sizestats", "dump analyze CORE heap --sort bytes shows the types by size"),
    ("taskstate", "dump analyze CORE tasks shows the states of all tasks"),
    ("threadstate", "dump analyze CORE threads shows the states of threads"),
    (
        "traverseheap",
        "dump analyze CORE heap --format json has the heap by type, and --format html its graph",
    ),
    ("verifyheap", "dump analyze CORE heap shows how much of the heap cannot be read"),
    ("verifyobj", "dump analyze CORE object ADDRESS shows an object, or says that there is none"),
];

/// The failure for an unknown view.
pub(super) fn unknown(name: &str) -> Failure {
    let failure = Failure::usage(format_args!("dump analyze: no view is called '{name}'"));
    let lower = name.to_lowercase();
    match COMMANDS.iter().find(|(command, _)| *command == lower) {
        Some((_, help)) => failure.with_help(help),
        None => failure.with_help("dipc dump analyze --help lists the views"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_order_and_lower_case() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(COMMANDS.iter().all(|(name, _)| name.to_lowercase() == *name));
    }
}
