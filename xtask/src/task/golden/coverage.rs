//! `cargo xtask golden --coverage`: the parts of the formats and of the protocol that no committed golden
//! has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clr_events::{Provider, Schema};
use dipc_wire::{CommandId, CommandSet, Feed, MessageReader};
use nettrace::raw::{BlockContent, BlockKind, Blocks, Layout};
use nettrace::{FieldType, Metadata, SliceReader, TypeCode};

use crate::task::workspace;

/// Parts that no golden can have, each on a line: a pattern, a tab, the reason. `*` at the end of a pattern
/// matches any text.
const REASONS: &str = "testdata/uncovered.tsv";

/// Prints the parts that no golden has.
///
/// # Errors
/// If one of them lacks a reason, or a reason belongs to none of them.
pub(super) fn run() -> Result<()> {
    let testdata = workspace::root().join("testdata");
    let mut all = Parts::default();
    all.add_blocks();
    all.add_type_codes();
    all.add_events();
    all.add_commands();
    let mut covered = Parts::default();
    for path in files(&testdata.join("traces"))? {
        if path.extension().is_some_and(|extension| extension != "txt" && extension != "jsonl") {
            let recording = read(&path)?;
            covered.add_recording(&recording).with_context(|| path.display().to_string())?;
        }
    }
    for path in
        files(&testdata.join("wire/requests"))?.into_iter().chain(files(&testdata.join("wire/replies"))?)
    {
        covered.add_message(&path)?;
    }
    let reasons = reasons()?;
    let uncovered: BTreeSet<_> = all.0.difference(&covered.0).collect();
    let reason = |part: &str| reasons.iter().find(|(pattern, _)| matches(pattern, part));
    let mut missing = 0;
    let mut by_reason = BTreeMap::<_, u32>::new();
    for part in &uncovered {
        if let Some((pattern, text)) = reason(part) {
            *by_reason.entry((pattern, text)).or_insert(0) += 1;
        } else {
            println!("no golden has: {part}");
            missing += 1;
        }
    }
    for ((pattern, text), parts) in &by_reason {
        println!("{pattern}: {parts} parts: {text}");
    }
    let unused: Vec<_> =
        reasons.iter().filter(|(pattern, _)| !uncovered.iter().any(|part| matches(pattern, part))).collect();
    for (pattern, _) in &unused {
        println!("{REASONS}: a golden has all of {pattern}");
    }
    println!(
        "{} of {} parts are in a golden, {} cannot be had",
        all.0.intersection(&covered.0).count(),
        all.0.len(),
        uncovered.len() - missing
    );
    if missing > 0 || !unused.is_empty() {
        bail!("{missing} parts without a golden and a reason, {} reasons without a part", unused.len());
    }
    Ok(())
}

/// Names of parts.
#[derive(Default)]
struct Parts(BTreeSet<String>);

impl Parts {
    fn add(&mut self, part: impl Into<String>) {
        self.0.insert(part.into());
    }

    fn add_blocks(&mut self) {
        for version in 1..=3 {
            self.add(block(version, BlockKind::Event));
        }
        let of_objects = [BlockKind::Event, BlockKind::Metadata, BlockKind::SequencePoint, BlockKind::Stack];
        let of_v6 = [BlockKind::Thread, BlockKind::RemoveThread, BlockKind::LabelList];
        for kind in of_objects {
            self.add(block(4, kind));
            self.add(block(6, kind));
        }
        for kind in of_v6 {
            self.add(block(6, kind));
        }
        for version in [4, 6] {
            self.add(headers(version, true));
            self.add(headers(version, false));
        }
        for pointer_size in [4, 8] {
            self.add(format!("pointers of {pointer_size} bytes"));
        }
    }

    fn add_type_codes(&mut self) {
        for code in 0..256 {
            if let Some(part) = type_code(TypeCode(code)) {
                self.add(part);
            }
        }
    }

    fn add_events(&mut self) {
        for provider in Provider::ALL {
            for schema in Schema::all(*provider) {
                self.add(event(schema));
            }
        }
    }

    fn add_commands(&mut self) {
        for command in CommandId::NAMED.iter().filter(|command| command.set != CommandSet::SERVER) {
            let name = command.name().unwrap_or_default();
            self.add(format!("request {name}"));
            self.add(format!("reply {name}"));
        }
    }

    fn add_recording(&mut self, recording: &[u8]) -> Result<()> {
        let blocks = Blocks::new(recording)?;
        let version = blocks.header().info().version;
        let has_header_forms = blocks.header().layout() != Layout::Netperf;
        self.add(format!("pointers of {} bytes", blocks.header().info().pointer_size));
        for found in blocks {
            let found = found?;
            self.add(block(version, found.kind()));
            if has_header_forms && let BlockContent::Event(events) = found.parse()? {
                self.add(headers(version, events.is_compressed()));
            }
        }
        let mut events = SliceReader::new(recording)?;
        while let Some(next) = events.next()? {
            if let Some(schema) = Schema::of(&next) {
                self.add(event(schema));
            }
            self.add_types(next.metadata());
        }
        Ok(())
    }

    fn add_types(&mut self, metadata: &Metadata) {
        for field in metadata.fields() {
            self.add_type(field.field_type());
        }
    }

    fn add_type(&mut self, field_type: &FieldType) {
        let code = match field_type {
            FieldType::Scalar(code) => *code,
            FieldType::Object(fields) => {
                for field in fields {
                    self.add_type(field.field_type());
                }
                TypeCode::OBJECT
            }
            FieldType::Array(element) => {
                self.add_type(element);
                TypeCode::ARRAY
            }
            FieldType::FixedArray(element, _) => {
                self.add_type(element);
                TypeCode::FIXED_ARRAY
            }
            FieldType::RelLoc(element) => {
                self.add_type(element);
                TypeCode::REL_LOC
            }
            FieldType::DataLoc(element) => {
                self.add_type(element);
                TypeCode::DATA_LOC
            }
            _ => return,
        };
        if let Some(part) = type_code(code) {
            self.add(part);
        }
    }

    /// Adds the command of a request or reply. The name of the file begins with the command's name.
    fn add_message(&mut self, path: &Path) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".req") {
            let bytes = read(path)?;
            if let Feed::Message { message, .. } = MessageReader::new().feed(&bytes)? {
                self.add(format!("request {}", message.header.command.name().unwrap_or("?")));
            }
        } else if name.ends_with(".reply") {
            let command = name.split('.').next().unwrap_or_default();
            let is_of = |id: &&CommandId| id.name().is_some_and(|name| kebab_case(name) == command);
            // Some are replies to commands that do not exist.
            if let Some(id) = CommandId::NAMED.iter().find(is_of) {
                self.add(format!("reply {}", id.name().unwrap_or_default()));
            }
        }
        Ok(())
    }
}

fn block(version: u32, kind: BlockKind) -> String {
    format!("block V{version} {kind:?}")
}

fn headers(version: u32, are_compressed: bool) -> String {
    format!("headers V{version} {}", if are_compressed { "compressed" } else { "uncompressed" })
}

fn type_code(code: TypeCode) -> Option<String> {
    code.name().map(|name| format!("type code {} {name}", code.0))
}

fn event(schema: &Schema) -> String {
    let name = if schema.name.is_empty() { schema.task } else { schema.name };
    format!("event {} {} V{} {name}", schema.provider.name(), schema.id, schema.version)
}

/// Returns `collect-tracing-2` for `CollectTracing2`; the first form of a command has the number 1.
fn kebab_case(name: &str) -> String {
    let mut result = String::new();
    for character in name.chars() {
        if (character.is_uppercase() || character.is_ascii_digit()) && !result.is_empty() {
            result.push('-');
        }
        result.push(character.to_ascii_lowercase());
    }
    if matches!(name, "CollectTracing" | "ProcessInfo" | "GenerateCoreDump") {
        result.push_str("-1");
    }
    result
}

fn matches(pattern: &str, part: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == part, |start| part.starts_with(start))
}

fn reasons() -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(workspace::root().join(REASONS)).context(REASONS)?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &str| {
        let (pattern, reason) =
            line.split_once('\t').with_context(|| format!("{REASONS}: no tab in '{line}'"))?;
        Ok((pattern.to_owned(), reason.to_owned()))
    };
    lines.map(parse).collect()
}

/// Returns the files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    workspace::open_unpacked(path)?.read_to_end(&mut bytes).with_context(|| path.display().to_string())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    /// Each part is in a golden, or has a reason.
    #[test]
    fn what_no_golden_has_has_a_reason() {
        super::run().unwrap();
    }

    #[test]
    fn names_of_commands_are_those_of_files() {
        let names = ["CollectTracing", "CollectTracing2", "GenerateCoreDump3", "ProcessInfo", "StopTracing"];
        let files = [
            "collect-tracing-1",
            "collect-tracing-2",
            "generate-core-dump-3",
            "process-info-1",
            "stop-tracing",
        ];
        assert_eq!(names.map(super::kebab_case), files);
    }
}
