//! The files in `packaging/monitor`: they can be read, and dipc accepts every command line in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;

use crate::cli::Cli;

/// A value of the part of YAML that the files use: blocks of maps and lists, and JSON in a line.
#[derive(Debug, Clone, PartialEq)]
enum Yaml {
    Text(String),
    List(Vec<Yaml>),
    Map(BTreeMap<String, Yaml>),
}

impl Yaml {
    fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(map) => map.get(key),
            _ => None,
        }
    }

    /// Calls `visit` with this value and all values in it.
    fn visit<'y>(&'y self, visit: &mut impl FnMut(&'y Self)) {
        visit(self);
        match self {
            Self::Text(_) => {}
            Self::List(list) => list.iter().for_each(|value| value.visit(visit)),
            Self::Map(map) => map.values().for_each(|value| value.visit(visit)),
        }
    }
}

/// Parses a file, and panics at what is not in that part of YAML.
fn parse(text: &str) -> Yaml {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let mut lines: Vec<(usize, String)> = lines
        .map(|line| {
            assert!(!line.contains('\t') && line.trim_end() == line, "{line}");
            (line.len() - line.trim_start().len(), line.trim_start().to_owned())
        })
        .collect();
    lines.reverse();
    let value = block(&mut lines, 0);
    assert!(lines.is_empty(), "{lines:?}");
    value
}

fn block(lines: &mut Vec<(usize, String)>, indent: usize) -> Yaml {
    let is_list = lines.last().is_some_and(|(_, line)| line.starts_with("- "));
    let (mut list, mut map) = (Vec::new(), BTreeMap::new());
    while let Some((found, line)) = lines.pop_if(|(found, _)| *found >= indent) {
        assert_eq!(found, indent, "{line}");
        if is_list {
            let item = line.strip_prefix("- ").unwrap_or_else(|| panic!("an item of a list: {line}"));
            if item.contains(": ") || item.ends_with(':') {
                lines.push((indent + 2, item.to_owned()));
                list.push(block(lines, indent + 2));
            } else {
                list.push(inline(item));
            }
            continue;
        }
        let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("a key: {line}"));
        let value = match value.trim() {
            "" => block(lines, lines.last().map_or(0, |(next, _)| *next).max(indent + 1)),
            value => inline(value),
        };
        assert!(map.insert(key.to_owned(), value).is_none(), "twice: {key}");
    }
    if is_list { Yaml::List(list) } else { Yaml::Map(map) }
}

fn inline(text: &str) -> Yaml {
    if let Ok(list) = serde_json::from_str::<Vec<String>>(text) {
        return Yaml::List(list.into_iter().map(Yaml::Text).collect());
    }
    if let Some(list) = text.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        return Yaml::List(list.split(", ").map(|item| Yaml::Text(item.to_owned())).collect());
    }
    if text == "{}" {
        return Yaml::Map(BTreeMap::new());
    }
    let text = serde_json::from_str(text).unwrap_or_else(|_| text.to_owned());
    assert!(!text.starts_with(['[', '{', '"', '&', '*', '!', '|', '>']), "{text}");
    Yaml::Text(text)
}

fn files(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/monitor");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|it| it == extension)).collect();
    files.sort();
    files
}

fn assert_accepted(place: &Path, arguments: &[String]) {
    // What the system fills in.
    let filled = arguments.iter().map(|argument| {
        let argument = argument.replace("$(NODE_IP)", "10.0.0.1").replace("$(NODE_NAME)", "node");
        argument.replace("${CREDENTIALS_DIRECTORY}", "/run/credentials/dipc-monitor.service")
    });
    let filled: Vec<String> = filled.collect();
    assert!(!filled.iter().any(|argument| argument.contains('$')), "{}: {filled:?}", place.display());
    assert_eq!(filled.first().map(String::as_str), Some("monitor"), "{}", place.display());
    let words = std::iter::once("dipc").chain(filled.iter().map(String::as_str));
    if let Err(error) = Cli::try_parse_from(words) {
        panic!("{}: {error}", place.display());
    }
}

#[test]
fn manifests_have_command_lines_that_are_accepted() {
    let mut containers = 0;
    for file in files("yaml") {
        let text = fs::read_to_string(&file).unwrap();
        let manifest = parse(&text);
        let mut arguments = Vec::new();
        manifest.visit(&mut |value| arguments.extend(value.get("args")));
        for list in arguments {
            let Yaml::List(list) = list else { panic!("{}: {list:?}", file.display()) };
            let text = |item: &Yaml| match item {
                Yaml::Text(text) => text.clone(),
                other => panic!("{other:?}"),
            };
            assert_accepted(&file, &list.iter().map(text).collect::<Vec<_>>());
            containers += 1;
        }
        // Those of Kubernetes and its operators say what they are.
        if manifest.get("kind").is_some() {
            assert!(manifest.get("apiVersion").is_some() && manifest.get("metadata").is_some());
        } else {
            assert!(manifest.get("receivers").is_some() && manifest.get("service").is_some());
        }
    }
    assert_eq!(containers, 2, "the sidecar and the DaemonSet");
}

#[test]
fn units_have_command_lines_that_are_accepted() {
    let units = files("service");
    assert_eq!(units.len(), 1);
    for file in units {
        let text = fs::read_to_string(&file).unwrap();
        let mut section = "";
        let mut commands = 0;
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
            assert!(!section.is_empty() && key.chars().all(|it| it.is_ascii_alphanumeric()), "{line}");
            if key.starts_with("Exec") {
                let mut words = value.split(' ').map(ToOwned::to_owned);
                assert_eq!((section, words.next().as_deref()), ("Service", Some("/usr/local/bin/dipc")));
                assert_accepted(&file, &words.collect::<Vec<_>>());
                commands += 1;
            }
        }
        assert_eq!(commands, 1, "{}", file.display());
    }
}
