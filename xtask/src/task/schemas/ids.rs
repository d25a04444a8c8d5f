//! Ids of events, and sets of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};

use super::facts::{Event, Facts, Provider};
use super::{heading, names};

/// The constants of a provider, by id: name and documentation.
type Constants = BTreeMap<u16, (String, String)>;

/// Returns the source of `ids.rs`.
pub(super) fn code(facts: &Facts) -> Result<String> {
    let mut code = heading("Ids of events, by provider.");
    code.truncate(code.trim_end().len());
    code.push('\n');
    for provider in &facts.providers {
        let constants = constants(facts, provider)?;
        module(&mut code, &module_of(provider), &provider.name, &constants);
    }
    let mut sources: BTreeMap<(&str, &str), Constants> = BTreeMap::new();
    for id in &facts.ids {
        if facts.providers.iter().all(|provider| provider.name != id.provider) {
            let source = sources.entry((&id.module, &id.provider)).or_default();
            source.insert(id.id, (id.constant.clone(), id.meaning.clone()));
        }
    }
    for ((name, provider), constants) in &sources {
        module(&mut code, name, provider, constants);
    }
    Ok(code)
}

/// Appends the module of a provider.
fn module(code: &mut String, name: &str, provider: &str, constants: &Constants) {
    let _ = writeln!(code, "\n/// Events of `{provider}`.\npub mod {name} {{");
    let _ =
        writeln!(code, "    /// The name of the provider.\n    pub const PROVIDER: &str = \"{provider}\";");
    for (id, (constant, meaning)) in constants {
        let _ = writeln!(code, "    /// {meaning}\n    pub const {constant}: u32 = {id};");
    }
    code.push_str("}\n");
}

/// Returns the module of a provider: `mono_profiler` for `MonoProfiler`.
fn module_of(provider: &Provider) -> String {
    names::constant(&provider.variant).to_ascii_lowercase()
}

/// Returns the constants of a provider. Events with a view have its name, all others that of TraceEvent, or
/// the manifest's opcode.
fn constants(facts: &Facts, provider: &Provider) -> Result<Constants> {
    let mut constants = Constants::new();
    for event in facts.events.iter().filter(|event| event.provider == provider.name) {
        constants.insert(event.id, (names::constant(&plain_name(event)), description(event)));
    }
    for view in &facts.views {
        for (_, id, _) in view.events.iter().filter(|(variant, ..)| *variant == provider.variant) {
            let (_, of) = constants.get(id).with_context(|| format!("{}: no event {id}", view.variant))?;
            let meaning = format!("{} {of}", view.meaning);
            constants.insert(*id, (names::constant(&view.variant), meaning));
        }
    }
    for id in facts.ids.iter().filter(|id| id.provider == provider.name) {
        constants.insert(id.id, (id.constant.clone(), id.meaning.clone()));
    }
    let mut ids = BTreeMap::new();
    for (id, (constant, _)) in &constants {
        let other = ids.insert(constant, id);
        ensure!(other.is_none(), "{}: events {other:?} and {id} are both {constant}", provider.name);
    }
    Ok(constants)
}

/// Returns the name that TraceEvent shows, or without one the manifest's.
fn plain_name(event: &Event) -> String {
    let Event { name, task, opcode_name, .. } = event;
    match (name.as_str(), opcode_name.strip_prefix("win:")) {
        ("", Some(phase)) => format!("{task}_{phase}"),
        ("", None) => opcode_name.clone(),
        (name, _) => name.replace('/', "_"),
    }
}

/// Returns the documentation of an event without a view.
fn description(event: &Event) -> String {
    if event.name.is_empty() {
        format!("`{}` of task `{}`.", event.opcode_name, event.task)
    } else {
        format!("`{}`.", event.name)
    }
}

/// Returns the source of `sets.rs`.
pub(super) fn sets(facts: &Facts) -> Result<String> {
    let mut code = heading("Sets of events, by subject.");
    code.push_str(
        "use crate::event_set::EventSet;\nuse crate::generated::ids;\nuse crate::provider::Provider;\n",
    );
    for set in &facts.sets {
        let _ = writeln!(code, "\n/// {}\npub static {}: EventSet = EventSet::new(&[", set.meaning, set.name);
        for (variant, constant) in &set.events {
            let provider = facts.provider(variant)?;
            let known = constants(facts, provider)?;
            ensure!(
                known.values().any(|(name, _)| name == constant),
                "{}: no {variant} {constant}",
                set.name
            );
            let _ = writeln!(code, "    (Provider::{variant}, ids::{}::{constant}),", module_of(provider));
        }
        code.push_str("]);\n");
    }
    Ok(code)
}
