//! The committed table of facts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

/// One version of an event.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) provider: String,
    pub(super) id: u16,
    pub(super) version: u8,
    pub(super) name: String,
    pub(super) task: String,
    pub(super) opcode_name: String,
    pub(super) opcode: u8,
    pub(super) level: u8,
    pub(super) keywords: u64,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// True if the field contains the number of elements of arrays in the same list.
    pub(super) counts: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A scalar type, with the map of its value names.
    Scalar(String, Option<String>),
    Array(Box<Kind>, Count),
    Struct(Vec<Field>, Count),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Fixed(u16),
    /// The number in the counting field of the list.
    Counted,
}

#[derive(Debug, Clone)]
pub(super) struct Map {
    pub(super) is_bits: bool,
    pub(super) entries: Vec<(u32, String)>,
}

#[derive(Debug, Clone)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) variant: String,
    pub(super) guid: String,
    pub(super) meaning: String,
}

/// A kind of event that has a typed view.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) variant: String,
    pub(super) shape: String,
    /// Variant of the provider, event id, oldest version.
    pub(super) events: Vec<(String, u16, u8)>,
    pub(super) meaning: String,
}

/// An id of an event that `events.tsv` lacks, or names like another.
#[derive(Debug, Clone)]
pub(super) struct EventId {
    pub(super) module: String,
    pub(super) provider: String,
    pub(super) id: u16,
    pub(super) constant: String,
    pub(super) meaning: String,
}

/// A set of events.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) meaning: String,
    /// Variant of the provider, constant of the event.
    pub(super) events: Vec<(String, String)>,
}

/// A method that shows a wait.
#[derive(Debug)]
pub(super) struct WaitMethod {
    pub(super) role: String,
    /// `*` matches any text.
    pub(super) pattern: String,
    pub(super) meaning: String,
}

#[derive(Debug)]
pub(super) struct Facts {
    pub(super) events: Vec<Event>,
    pub(super) maps: BTreeMap<String, Map>,
    pub(super) providers: Vec<Provider>,
    pub(super) views: Vec<View>,
    pub(super) ids: Vec<EventId>,
    pub(super) sets: Vec<Set>,
    pub(super) waits: Vec<WaitMethod>,
    /// The documentation of views' fields by view (`*` for all others) and name.
    pub(super) fields: BTreeMap<(String, String), String>,
}

impl Facts {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut events = Vec::new();
        for [provider, id, version, name, task, opcode_name, opcode, level, keywords, fields] in
            rows::<10>(&folder.join("events.tsv"))?
        {
            let context = || format!("events.tsv: {provider} {id} version {version}");
            events.push(Event {
                fields: fields_of(&fields).with_context(context)?,
                id: id.parse().with_context(context)?,
                version: version.parse().with_context(context)?,
                opcode: opcode.parse().with_context(context)?,
                level: level.parse().with_context(context)?,
                keywords: hex(&keywords).with_context(context)?,
                provider,
                name,
                task,
                opcode_name,
            });
        }
        let mut maps: BTreeMap<String, Map> = BTreeMap::new();
        for [map, kind, number, name] in rows::<4>(&folder.join("maps.tsv"))? {
            let is_bits = kind == "bits";
            let number = if is_bits { u32::try_from(hex(&number)?)? } else { number.parse()? };
            let map = maps.entry(map).or_insert(Map { is_bits, entries: Vec::new() });
            ensure!(map.is_bits == is_bits, "{name}: a map of values and bits");
            map.entries.push((number, name));
        }
        let providers = rows::<4>(&folder.join("providers.tsv"))?
            .into_iter()
            .map(|[name, variant, guid, meaning]| Provider { name, variant, guid, meaning })
            .collect();
        let mut views = Vec::new();
        for [variant, shape, events, meaning] in rows::<4>(&folder.join("views.tsv"))? {
            let events = events.split(',').map(|event| {
                let (provider, event) = event.split_once('/').context("no provider")?;
                let (id, since) = event.split_once('@').context("no version")?;
                anyhow::Ok((provider.to_owned(), id.parse()?, since.parse()?))
            });
            let events = events.collect::<Result<_>>().with_context(|| format!("views.tsv: {variant}"))?;
            views.push(View { variant, shape, events, meaning });
        }
        let fields = rows::<3>(&folder.join("fields.tsv"))?
            .into_iter()
            .map(|[view, field, meaning]| ((view, field), meaning))
            .collect();
        let mut ids = Vec::new();
        for [module, provider, id, constant, meaning] in rows::<5>(&folder.join("ids.tsv"))? {
            let id = id.parse().with_context(|| format!("ids.tsv: {constant}"))?;
            ids.push(EventId { module, provider, id, constant, meaning });
        }
        let mut sets = Vec::new();
        for [name, meaning, events] in rows::<3>(&folder.join("sets.tsv"))? {
            let events = set_events(&events).with_context(|| format!("sets.tsv: {name}"))?;
            sets.push(Set { name, meaning, events });
        }
        let waits = rows::<4>(&folder.join("waits.tsv"))?
            .into_iter()
            .map(|[role, _, pattern, meaning]| WaitMethod { role, pattern, meaning })
            .collect();
        Ok(Self { events, maps, providers, views, ids, sets, waits, fields })
    }

    /// Returns the versions of an event, oldest first.
    pub(super) fn versions(&self, provider: &str, id: u16) -> Vec<&Event> {
        self.events.iter().filter(|event| event.provider == provider && event.id == id).collect()
    }

    /// The documentation of a view's field.
    pub(super) fn field(&self, view: &str, field: &str) -> Result<&str> {
        let of = |view: &str| self.fields.get(&(view.to_owned(), field.to_owned()));
        let meaning =
            of(view).or_else(|| of("*")).with_context(|| format!("fields.tsv: no {field} of {view}"))?;
        Ok(meaning)
    }

    pub(super) fn provider(&self, variant: &str) -> Result<&Provider> {
        self.providers
            .iter()
            .find(|provider| provider.variant == variant)
            .with_context(|| format!("no provider {variant}"))
    }
}

fn rows<const N: usize>(path: &Path) -> Result<Vec<[String; N]>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let row = |line: &str| {
        let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
        cells.try_into().map_err(|_| anyhow::anyhow!("{}: not {N} cells: {line}", path.display()))
    };
    text.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

/// Parses events of a set: `Provider: CONSTANT CONSTANT; Provider: CONSTANT`.
fn set_events(text: &str) -> Result<Vec<(String, String)>> {
    let mut events = Vec::new();
    for part in text.split("; ") {
        let (provider, constants) = part.split_once(": ").context("no provider")?;
        events.extend(constants.split(' ').map(|constant| (provider.to_owned(), constant.to_owned())));
    }
    Ok(events)
}

fn hex(text: &str) -> Result<u64> {
    let digits = text.strip_prefix("0x").context("not hexadecimal")?;
    Ok(u64::from_str_radix(digits, 16)?)
}

/// Parses fields separated by spaces; a struct has such a list in braces.
fn fields_of(text: &str) -> Result<Vec<Field>> {
    let mut fields = Vec::new();
    let mut counter: Option<String> = None;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once(':').context("a field without a type")?;
        let (kind_text, after) = if let Some(inner) = after.strip_prefix('{') {
            let end = inner.rfind('}').context("a brace is missing")?;
            let list = fields_of(&inner[..end])?;
            (Err(list), &inner[end + 1..])
        } else {
            let end = after.find([' ', '[']).unwrap_or(after.len());
            (Ok(&after[..end]), &after[end..])
        };
        let (count, after) = match after.strip_prefix('[') {
            Some(inner) => {
                let (count, after) = inner.split_once(']').context("a bracket is missing")?;
                (Some(count), after)
            }
            None => (None, after),
        };
        let count = match count {
            None => None,
            Some(text) => Some(if let Ok(count) = text.parse() {
                Count::Fixed(count)
            } else {
                ensure!(counter.as_deref().is_none_or(|known| known == text), "two fields count");
                counter = Some(text.to_owned());
                Count::Counted
            }),
        };
        let kind = match (kind_text, count) {
            (Ok(scalar), count) => {
                let (code, map) = match scalar.split_once('=') {
                    Some((code, map)) => (code, Some(map.to_owned())),
                    None => (scalar, None),
                };
                let scalar = Kind::Scalar(code.to_owned(), map);
                match count {
                    Some(count) => Kind::Array(Box::new(scalar), count),
                    None => scalar,
                }
            }
            (Err(list), Some(count)) => Kind::Struct(list, count),
            (Err(_), None) => bail!("{name}: a struct without a count"),
        };
        fields.push(Field { name: name.trim().to_owned(), kind, counts: false });
        rest = after.trim_start();
    }
    if let Some(counter) = counter {
        let field = fields.iter_mut().find(|field| field.name == counter);
        field.with_context(|| format!("no field {counter}"))?.counts = true;
    }
    Ok(fields)
}
