//! Tests that `dipc-cli` has words, flags and exit codes alone. It reads no dump: it opens memory, and words
//! what the views of `clr-dump` return. It starts no session but by `dipc_collect::session`, where a start
//! can be given up.

use std::collections::BTreeMap;

use crate::task::module_circles::{Module, tokens, visit, without_tests};
use crate::task::workspace;

/// The names of `clr-dump` that are for reading memory by address, object by object or frame by frame.
const NAMES: [&str; 9] = [
    "CodeMap",
    "HeapVisitor",
    "Memory",
    "MemoryResult",
    "Missing",
    "NativeImages",
    "TouchedMemory",
    "WithCopy",
    "unwind",
];

/// Returns the names of `clr-dump` for reading memory that a source file uses outside tests.
fn names(source: &str) -> Vec<String> {
    let module = Module::read(&without_tests(&tokens(source)));
    let globs = module.globs.iter().filter(|path| path.first().is_some_and(|first| first == "clr_dump"));
    let paths = module.imports.values().chain(&module.paths).filter_map(|path| match &path[..] {
        [first, name, ..] if first == "clr_dump" && NAMES.contains(&&**name) => Some(name.clone()),
        _ => None,
    });
    let mut names: Vec<_> = paths.chain(globs.map(|_| "*".to_owned())).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn the_program_reads_no_dump() {
    let mut files = BTreeMap::new();
    visit(&workspace::root().join("crates/dipc-cli/src"), "", &mut files);
    let found: Vec<_> = files
        .iter()
        .map(|(file, source)| (file, names(source)))
        .filter(|(_, names)| !names.is_empty())
        .collect();
    assert!(found.is_empty(), "{found:?}: move what reads memory to clr-dump");
}

#[test]
fn the_program_starts_sessions_by_dipc_collect_alone() {
    let mut files = BTreeMap::new();
    visit(&workspace::root().join("crates/dipc-cli/src"), "", &mut files);
    let starts = |source: &&String| tokens(source).contains(&"start_session");
    let found: Vec<_> = files.iter().filter(|(_, source)| starts(source)).map(|(file, _)| file).collect();
    assert!(
        found.is_empty(),
        "{found:?}: dipc_collect::session::start begins a session that can be given up"
    );
}

#[test]
fn uses_and_paths_of_names_for_reading_memory_are_found() {
    let source = "use clr_dump::{Dump, HeapVisitor as Visitor, Memory}; fn f() { clr_dump::unwind(); }
        // clr_dump::CodeMap
        #[cfg(test)] mod tests { use clr_dump::WithCopy; }";
    assert_eq!(names(source), ["HeapVisitor", "Memory", "unwind"]);
    assert_eq!(names("use clr_dump::*;"), ["*"]);
    assert!(names("use clr_dump::{Dump, HeapObject}; use crate::Memory;").is_empty());
}
