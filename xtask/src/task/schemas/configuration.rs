//! The keys of the monitor's configuration, from the schema that dotnet-monitor publishes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value};

/// The start of references.
const DEFINITIONS: &str = "#/definitions/";

/// Returns the code for the files of a folder.
pub(super) fn code(folder: &Path) -> Result<String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).with_context(|| name.to_owned());
    let mut schema: Value =
        serde_json::from_str(&read("dotnet-monitor.json")?).context("dotnet-monitor.json")?;
    let additions = serde_json::from_str(&read("additions.json")?).context("additions.json")?;
    merge(&mut schema, additions);
    let mut generator = Generator { schema, effects: effects(&read("support.tsv")?)?, code: BTreeMap::new() };
    let root = generator.object("", &generator.schema.clone())?;
    if let Some((object, key)) = generator.effects.keys().next() {
        bail!("support.tsv: {object} {key} is not a key of the schema");
    }
    let mut code = String::from(
        "//! The keys of dotnet-monitor's configuration: their shapes as in its schema, and their effect in this\n\
         //! program.\n//!\n\
         //! Made by `cargo xtask schemas` from the files in `schema`: change these, not this file.\n\n\
         use crate::configuration::shape::{Object, Property, Shape, Support, Variant};\n\n",
    );
    writeln!(code, "pub(crate) static ROOT: Object = {root};")?;
    for item in generator.code.values() {
        write!(code, "\n{item}")?;
    }
    Ok(code)
}

/// Adds what a schema has to another: keys of objects, and elements at the end of lists.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, mut value) in from {
                let before = value.as_object_mut().and_then(|value| value.remove("x-before"));
                match (into.get_mut(&key), before.as_ref().and_then(Value::as_str)) {
                    (Some(known), _) => merge(known, value),
                    (None, None) => _ = into.insert(key, value),
                    (None, Some(next)) => {
                        let known = std::mem::take(into);
                        for (name, known) in known {
                            if name == next {
                                into.insert(key.clone(), value.clone());
                            }
                            into.insert(name, known);
                        }
                    }
                }
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from),
        (into, from) => *into = from,
    }
}

/// The effect of a key that is not simply used, and its reason.
struct Effect {
    name: String,
    reason: String,
}

/// Reads the table of effects by object and key.
fn effects(table: &str) -> Result<BTreeMap<(String, String), Effect>> {
    let mut effects = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t').map(str::to_owned);
        let mut column = || columns.next().unwrap_or_default();
        let (object, key, name, reason) = (column(), column(), column(), column());
        let object = if object == "-" { String::new() } else { object };
        ensure!(
            effects.insert((object, key), Effect { name, reason }).is_none(),
            "support.tsv: a key has two lines: {line}"
        );
    }
    Ok(effects)
}

struct Generator {
    schema: Value,
    /// The effects that are not in the code yet.
    effects: BTreeMap<(String, String), Effect>,
    /// The items of the code by their names.
    code: BTreeMap<String, String>,
}

impl Generator {
    /// Returns the expression of an object.
    fn object(&mut self, name: &str, definition: &Value) -> Result<String> {
        let empty = Map::new();
        let properties = definition["properties"].as_object().unwrap_or(&empty);
        let required = definition["required"].as_array().map_or(&[][..], Vec::as_slice);
        let mut code = "Object {\n    properties: &[\n".to_owned();
        for (key, value) in properties {
            let place = || format!("{name}: {key}");
            let effect = self.effects.remove(&(name.to_owned(), key.clone()));
            let mut shape = match key.as_str() {
                "Settings" if is_tagged(definition) => "Shape::Settings".to_owned(),
                _ => self.shape(value).with_context(place)?,
            };
            if effect.as_ref().is_some_and(|effect| effect.name == "template") {
                shape = match shape.strip_prefix("Shape::List(&").and_then(|it| it.strip_suffix(')')) {
                    Some(item) => format!("Shape::List(&Shape::TextOr(&{item}))"),
                    None => format!("Shape::TextOr(&{shape})"),
                };
            }
            let support = support(effect.as_ref()).with_context(place)?;
            let is_required = required.iter().any(|name| name == key);
            writeln!(
                code,
                "        Property {{ name: {key:?}, shape: {shape}, is_required: {is_required}, support: {support} }},"
            )?;
        }
        code.push_str("    ],\n}");
        Ok(code)
    }

    /// Returns the expression of a shape.
    fn shape(&mut self, value: &Value) -> Result<String> {
        if let Some(name) = value["$ref"].as_str() {
            return self.referenced(name.strip_prefix(DEFINITIONS).context("a reference")?);
        }
        if let Some(alternatives) = value["oneOf"].as_array() {
            let other: Vec<_> = alternatives.iter().filter(|it| it["type"] != "null").collect();
            return match &*other {
                [any] if **any == Value::Object(Map::new()) => Ok("Shape::Any".to_owned()),
                [only] => self.shape(only),
                [object, text] if text["type"] == "string" => {
                    Ok(format!("Shape::TextOr(&{})", self.shape(object)?))
                }
                _ => bail!("alternatives {value}"),
            };
        }
        let kind = match &value["type"] {
            Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").unwrap_or(&Value::Null),
            kind => kind,
        };
        let bound = |name: &str| value[name].as_f64();
        Ok(match kind.as_str().context("a type")? {
            "string" => match value["format"].as_str() {
                None => "Shape::Text",
                Some("duration") => "Shape::Duration",
                Some("uri") => "Shape::Uri",
                Some("guid") => "Shape::Guid",
                Some(format) => bail!("format {format}"),
            }
            .to_owned(),
            "boolean" => "Shape::Boolean".to_owned(),
            "integer" => {
                let least = integer(bound("minimum").unwrap_or_else(|| f64::from(i32::MIN)));
                let most = integer(bound("maximum").unwrap_or_else(|| f64::from(i32::MAX)));
                format!("Shape::Integer({least}, {most})")
            }
            "number" => {
                let text = |bound: Option<f64>, none: &str| {
                    bound.map_or_else(|| none.to_owned(), |it| format!("{it:?}"))
                };
                let least = text(bound("minimum"), "f64::NEG_INFINITY");
                format!("Shape::Number({least}, {})", text(bound("maximum"), "f64::INFINITY"))
            }
            "array" => format!("Shape::List(&{})", self.shape(&value["items"])?),
            "object" => format!("Shape::Map(&{})", self.shape(&value["additionalProperties"])?),
            kind => bail!("type {kind}"),
        })
    }

    /// Returns the expression of the shape of a definition, and adds its code.
    fn referenced(&mut self, name: &str) -> Result<String> {
        let definition = self.schema["definitions"][name].clone();
        let constant = constant(name);
        if let Some(names) = definition["enum"].as_array() {
            let item = format!("const {constant}: &[&str] = &{};\n", Value::from(names.clone()));
            self.code.insert(constant.clone(), item.replace("\",\"", "\", \""));
            let kind = if definition["x-enumFlags"] == true { "Flags" } else { "Enum" };
            return Ok(format!("Shape::{kind}({constant})"));
        }
        if !self.code.contains_key(&constant) {
            // Its place is taken before the definitions that it refers to.
            self.code.insert(constant.clone(), String::new());
            let object = self.object(name, &definition).with_context(|| name.to_owned())?;
            self.code.insert(constant.clone(), format!("static {constant}: Object = {object};\n"));
        }
        if !is_tagged(&definition) {
            return Ok(format!("Shape::Object(&{constant})"));
        }
        let variants = format!("{}S", constant.trim_end_matches("_OPTIONS"));
        let code = self.variants(&variants, &definition)?;
        self.code.insert(variants.clone(), code);
        Ok(format!("Shape::Tagged(&{constant}, {variants})"))
    }

    /// Returns the constant with the types of a tagged object.
    fn variants(&mut self, constant: &str, definition: &Value) -> Result<String> {
        let mut code = format!("pub(crate) const {constant}: &[Variant] = &[\n");
        for alternative in definition["oneOf"].as_array().into_iter().flatten() {
            let name = &alternative["properties"]["Type"]["const"];
            let settings = match alternative["properties"]["Settings"]["$ref"].as_str() {
                Some(reference) => {
                    let name = reference.strip_prefix(DEFINITIONS).context("a reference")?;
                    self.referenced(name)?;
                    format!("Some(&{})", self::constant(name))
                }
                None => "None".to_owned(),
            };
            let is_required = alternative["required"].is_array();
            writeln!(
                code,
                "    Variant {{ name: {name}, settings: {settings}, is_required: {is_required} }},"
            )?;
        }
        Ok(code + "];\n")
    }
}

/// Returns true if a `Type` chooses the shape of `Settings`.
fn is_tagged(definition: &Value) -> bool {
    definition["oneOf"][0]["properties"]["Type"].is_object()
}

/// Returns the expression of an effect.
fn support(effect: Option<&Effect>) -> Result<String> {
    let Some(Effect { name, reason }) = effect else { return Ok("Support::Used".to_owned()) };
    let (name, feature) = name.split_once(" without ").map_or((&**name, None), |(it, of)| (it, Some(of)));
    let otherwise = match name {
        "template" => return Ok("Support::Used".to_owned()),
        "ignored" => format!("Support::Ignored({reason:?})"),
        "unsupported" => format!("Support::Unsupported({reason:?})"),
        _ => bail!("unknown effect {name}"),
    };
    Ok(match feature {
        None => otherwise,
        Some(feature) => format!("if cfg!(feature = {feature:?}) {{ Support::Used }} else {{ {otherwise} }}"),
    })
}

/// Returns a number with its digits in groups.
fn integer(number: f64) -> String {
    let digits = format!("{}", number.abs());
    let mut text = if number < 0.0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// Returns the name of a constant: `CPU_USAGE_OPTIONS` of `CPUUsageOptions`.
fn constant(name: &str) -> String {
    let signs: Vec<char> = name.chars().collect();
    let mut constant = String::new();
    for (at, sign) in signs.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| signs.get(at));
        let starts_word = sign.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase() || signs.get(at + 1).is_some_and(|next| next.is_lowercase())
            });
        if starts_word {
            constant.push('_');
        }
        constant.push(sign.to_ascii_uppercase());
    }
    constant
}
