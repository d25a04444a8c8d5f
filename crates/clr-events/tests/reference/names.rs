//! The C# names of every method in the recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clr_events::ClrEvent;
use clr_events::csharp::{Detail, RuntimeName};
use nettrace::SliceReader;

use crate::{bytes_of, shared, testdata};

type Names = BTreeSet<[String; 3]>;

fn names_of(recording: &[u8]) -> Names {
    let mut names = Names::new();
    let mut events = SliceReader::new(recording).expect("a recording");
    let each = |event: nettrace::Event<'_>| {
        let Ok(Some(
            ClrEvent::MethodLoadVerbose(method)
            | ClrEvent::MethodUnloadVerbose(method)
            | ClrEvent::MethodDcStartVerbose(method)
            | ClrEvent::MethodDcStopVerbose(method),
        )) = ClrEvent::of(&event)
        else {
            return;
        };
        let texts = [method.method_namespace, method.method_name, method.method_signature];
        names.insert(texts.map(|text| text.to_string()));
    };
    events.for_each(each).expect("bytes in memory");
    names
}

/// Returns the number of commas that are in no brackets but those around the whole text.
fn commas(parameters: &str) -> usize {
    let mut depth = 0;
    let mut count = 0;
    for c in parameters.chars() {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' | '>' => depth -= 1,
            ',' if depth == 1 => count += 1,
            _ => {}
        }
    }
    assert_eq!(depth, 0, "{parameters}");
    count
}

/// Checks a name against the runtime's text; returns its fault.
fn fault(runtime: &RuntimeName<'_>, csharp: &str) -> Option<&'static str> {
    let operators = [
        "operator !=",
        "operator !",
        "operator <=",
        "operator >=",
        "operator <<",
        "operator >>",
        "operator <",
        "operator >",
    ];
    let plain = operators.iter().fold(csharp.to_owned(), |text, operator| text.replace(operator, "operator"));
    let is_dynamic = runtime.namespace == "dynamicClass";
    if plain.contains('!') || (plain.contains('`') && !is_dynamic) {
        return Some("the runtime's characters");
    }
    if ["class ", "valuetype ", "unsigned ", "wchar", "int32", "float64", "_modifier"]
        .iter()
        .any(|word| csharp.contains(word))
    {
        return Some("the runtime's words");
    }
    for (open, close) in [('<', '>'), ('(', ')'), ('[', ']')] {
        if plain.matches(open).count() != plain.matches(close).count() {
            return Some("unbalanced brackets");
        }
    }
    let open = |text: &str| text.rfind('(').filter(|_| text.ends_with(')')).map(|at| text[at..].to_owned());
    // Function pointers have parentheses of their own.
    match (open(runtime.signature), open(csharp)) {
        (Some(theirs), Some(ours))
            if !runtime.signature.contains("fnptr") && commas(&theirs) != commas(&ours) =>
        {
            Some("another number of parameters")
        }
        (Some(_), None) if !csharp.ends_with(']') => Some("no parameters"),
        _ => None,
    }
}

/// Checks all names of the recordings in a folder and returns their number.
fn check(traces: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(traces).expect("a directory") {
        let path = entry.expect("an entry").path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !file.contains(".nettrace") && !file.contains(".netperf") {
            continue;
        }
        let names = names_of(&bytes_of(&path));
        let mut shown: BTreeMap<String, Vec<&[String; 3]>> = BTreeMap::new();
        for texts in &names {
            let [namespace, name, signature] = texts;
            let runtime = RuntimeName { namespace, name, signature };
            for detail in [Detail::Short, Detail::Qualified] {
                let csharp =
                    runtime.csharp(detail).unwrap_or_else(|| panic!("{file}: {texts:?} has no C# name"));
                if let Some(fault) = fault(&runtime, &csharp.text) {
                    panic!("{file}: {fault}: {} for {texts:?}", csharp.text);
                }
                if detail == Detail::Qualified {
                    shown.entry(csharp.text).or_default().push(texts);
                }
            }
        }
        // Types that exist in memory alone are identified by address, and names without return types hide
        // these.
        let same = shown.values().filter(|texts| {
            let differs = |texts: &[String; 3]| {
                let parameters = texts[2].find('(').map(|at| texts[2][at..].to_owned());
                (texts[0].clone(), texts[1].clone(), parameters)
            };
            let is_in_memory = texts.iter().any(|texts| texts[2].contains("pMT"));
            !is_in_memory && texts.iter().any(|other| differs(other) != differs(texts[0]))
        });
        let same: Vec<_> = same.collect();
        assert!(same.is_empty(), "{file}: methods with the same name: {same:?}");
        count += names.len();
    }
    count
}

#[test]
fn every_method_of_the_recordings_has_a_csharp_name() {
    let count = check(&testdata().join("traces"));
    assert!(count > 5_000, "recordings are missing: {count} methods");
}

#[test]
fn every_method_of_the_larger_collection_has_a_csharp_name() {
    let Some(shared) = shared() else { return };
    let count = check(&shared.join("traces/real"));
    assert!(count > 5_000, "recordings are missing: {count} methods");
}
