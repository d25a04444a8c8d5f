//! The shapes of sections and values, and the check of a tree against them.

use std::fmt::Write as _;

use super::finding::{Findings, Severity};
use super::json::join;
use super::tree::Node;
use super::value::{parse_boolean, parse_time_span};

/// The shape of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// Any text.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number in a range.
    Integer(i64, i64),
    /// A number in a range.
    Number(f64, f64),
    /// A `TimeSpan`.
    Duration,
    /// A URI with a scheme.
    Uri,
    /// A GUID.
    Guid,
    /// Any of the names, in any case.
    Enum(&'static [&'static str]),
    /// Some of the names, separated by commas.
    Flags(&'static [&'static str]),
    /// An object with these keys.
    Object(&'static Object),
    /// An object with any keys.
    Map(&'static Shape),
    /// A list.
    List(&'static Shape),
    /// A text, or the other shape: the name of a template, or the short form of a section.
    TextOr(&'static Shape),
    /// An object with a `Type` that chooses the shape of its `Settings`.
    Tagged(&'static Object, &'static [Variant]),
    /// The settings of a tagged object.
    Settings,
    /// Not checked.
    Any,
}

/// The shape of an object.
#[derive(Debug, PartialEq)]
pub(crate) struct Object {
    pub(crate) properties: &'static [Property],
}

/// A key of an object.
#[derive(Debug, PartialEq)]
pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) is_required: bool,
    pub(crate) support: Support,
}

/// The effect of a key in this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// The key is used.
    Used,
    /// The key does not need an effect, for a reason.
    Ignored(&'static str),
    /// The key is not supported, for a reason.
    Unsupported(&'static str),
}

/// A value of `Type`.
#[derive(Debug, PartialEq)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) settings: Option<&'static Object>,
    pub(crate) is_required: bool,
}

impl Object {
    /// Returns a key by name, in any case.
    pub(crate) fn get(&self, name: &str) -> Option<&'static Property> {
        self.properties.iter().find(|property| property.name.eq_ignore_ascii_case(name))
    }
}

/// Checks a node against a shape. The shapes bound the depth.
pub(crate) fn check(node: &Node, shape: &Shape, path: &str, findings: &mut Findings) {
    match shape {
        Shape::Object(object) => {
            if is_object(node, path, findings) {
                check_object(node, object, None, path, findings);
            }
        }
        Shape::Tagged(object, variants) => {
            if is_object(node, path, findings) {
                let kind = node.get("Type").and_then(|kind| kind.value.as_deref());
                let variant = variants.iter().find(|variant| {
                    Some(variant.name)
                        == kind
                            .and_then(|kind| variant.name.eq_ignore_ascii_case(kind).then_some(variant.name))
                });
                check_object(node, object, variant, path, findings);
            }
        }
        Shape::Map(shape) => {
            if is_object(node, path, findings) {
                for child in node.children() {
                    check(child, shape, &join(path, &child.name), findings);
                }
            }
        }
        Shape::List(shape) => {
            if let Some(value) = &node.value
                && !value.is_empty()
            {
                let message = format!("expected a list, as '[ … ]', not {value:?}");
                findings.error(node.location, path, message, None);
            }
            for item in node.items() {
                let path = join(path, &item.name);
                if item.name.parse::<u32>().is_err() {
                    let message = format!("{:?} is not the number of an item of a list", item.name);
                    findings.error(item.location, &path, message, None);
                } else {
                    check(item, shape, &path, findings);
                }
            }
        }
        Shape::TextOr(shape) => {
            if node.value.is_none() {
                check(node, shape, path, findings);
            }
        }
        Shape::Any | Shape::Settings => {}
        scalar => {
            if node.has_children() {
                let message = format!("expected {}, not {}", scalar.description(), composite(node));
                findings.error(node.location, path, message, None);
            } else if let Some(value) = &node.value
                && !scalar.accepts(value)
            {
                let help = scalar.suggestion(value);
                let message = format!("{value:?} is not {}", scalar.description());
                findings.error(node.location, path, message, help);
            }
        }
    }
}

fn is_object(node: &Node, path: &str, findings: &mut Findings) -> bool {
    match &node.value {
        Some(value) if !value.is_empty() => {
            let message = format!("expected an object, as '{{ … }}', not {value:?}");
            findings.error(node.location, path, message, None);
            false
        }
        _ if node.is_list && node.has_children() => {
            let message = "expected an object, as '{ … }', not a list".to_owned();
            findings.error(node.location, path, message, None);
            false
        }
        _ => true,
    }
}

fn composite(node: &Node) -> &'static str {
    if node.is_list { "a list" } else { "an object" }
}

fn check_object(
    node: &Node,
    object: &'static Object,
    variant: Option<&'static Variant>,
    path: &str,
    findings: &mut Findings,
) {
    for child in node.children() {
        let path = join(path, &child.name);
        let Some(property) = object.get(&child.name) else {
            if path != "$schema" {
                let names = object.properties.iter().map(|property| property.name);
                let help = nearest(&child.name, names.clone()).map_or_else(
                    || format!("known here: {}", names.collect::<Vec<_>>().join(", ")),
                    |name| format!("did you mean {name}?"),
                );
                findings.error(child.location, &path, "unknown key".to_owned(), Some(help));
            }
            continue;
        };
        match property.support {
            // `false` and `null` do not request anything.
            _ if child.is_empty() || child.value.as_deref().and_then(parse_boolean) == Some(false) => {}
            Support::Used => {}
            Support::Ignored(reason) => {
                findings.add(Severity::Ignored, child.location, &path, reason.to_owned(), None);
            }
            Support::Unsupported(reason) => {
                findings.add(Severity::Unsupported, child.location, &path, reason.to_owned(), None);
            }
        }
        if property.shape == Shape::Settings {
            match variant.map(|variant| variant.settings) {
                Some(Some(settings)) => check(child, &Shape::Object(settings), &path, findings),
                Some(None) if !child.is_empty() => {
                    let message = "this type has no settings".to_owned();
                    findings.error(child.location, &path, message, Some("remove Settings".to_owned()));
                }
                _ => {}
            }
        } else {
            check(child, &property.shape, &path, findings);
        }
    }
    for property in object.properties.iter().filter(|property| property.is_required) {
        let child = node.get(property.name);
        let is_blank =
            |child: &Node| !child.has_children() && child.value.as_deref().is_none_or(str::is_empty);
        if child.is_none_or(is_blank) {
            let location = child.map_or(node.location, |child| child.location);
            let help = Some(format!("add {:?}: {}", property.name, property.shape.description()));
            findings.error(location, path, format!("{} is missing", property.name), help);
        }
    }
    if let Some(variant) = variant.filter(|variant| variant.is_required)
        && node.get("Settings").is_none_or(Node::is_empty)
    {
        let keys = variant.settings.into_iter().flat_map(|settings| settings.properties);
        let needed: Vec<_> = keys.filter(|key| key.is_required).map(|key| key.name).collect();
        let help = Some(format!("add \"Settings\" with {}", needed.join(" and ")));
        findings.error(node.location, path, format!("{} needs Settings", variant.name), help);
    }
}

impl Shape {
    /// A noun phrase for messages.
    pub(crate) fn description(&self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Integer(least, most) => {
                range("a whole number", *least, *most, i32::MIN.into(), i32::MAX.into())
            }
            Self::Number(least, most) => range("a number", *least, *most, f64::NEG_INFINITY, f64::INFINITY),
            Self::Duration => "a duration as 00:00:30".to_owned(),
            Self::Uri => "a URI as https://host".to_owned(),
            Self::Guid => "a GUID".to_owned(),
            Self::Enum(names) => format!("one of {}", names.join(", ")),
            Self::Flags(names) => format!("a list of {}, separated by commas", names.join(", ")),
            Self::List(_) => "a list".to_owned(),
            Self::TextOr(_) => "a text or an object".to_owned(),
            Self::Object(_) | Self::Map(_) | Self::Tagged(..) | Self::Settings | Self::Any => {
                "an object".to_owned()
            }
        }
    }

    /// Returns true if a string is a value of the shape.
    fn accepts(&self, value: &str) -> bool {
        let is_of =
            |names: &[&str], value: &str| names.iter().any(|name| name.eq_ignore_ascii_case(value.trim()));
        match self {
            Self::Boolean => parse_boolean(value).is_some(),
            Self::Integer(least, most) => {
                value.trim().parse::<i64>().is_ok_and(|number| (*least..=*most).contains(&number))
            }
            Self::Number(least, most) => {
                let number = value.trim().parse::<f64>();
                number.is_ok_and(|number| number.is_finite() && *least <= number && number <= *most)
            }
            Self::Duration => parse_time_span(value).is_some(),
            Self::Uri => value.split_once(':').is_some_and(|(scheme, rest)| {
                let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                    && scheme.chars().all(|sign| sign.is_ascii_alphanumeric() || "+-.".contains(sign));
                is_scheme && !rest.is_empty()
            }),
            Self::Guid => {
                let value = value.trim().trim_start_matches('{').trim_end_matches('}');
                dipc_client::Uuid::try_parse(value).is_ok()
            }
            Self::Enum(names) => is_of(names, value),
            Self::Flags(names) => value.split(',').all(|value| is_of(names, value)),
            _ => true,
        }
    }

    /// The likely intention of a wrong value.
    fn suggestion(&self, value: &str) -> Option<String> {
        match self {
            Self::Enum(names) | Self::Flags(names) => {
                nearest(value, names.iter().copied()).map(|name| format!("did you mean {name}?"))
            }
            Self::Duration => {
                let duration = clr_conditions::parse_duration(value).ok()?;
                Some(format!("write it as {}", super::value::format_time_span(duration)))
            }
            _ => None,
        }
    }
}

/// Describes a kind of number with its bounds, unless they equal the bounds of its type.
fn range<T: Copy + PartialEq + std::fmt::Display>(
    kind: &str,
    least: T,
    most: T,
    lowest: T,
    highest: T,
) -> String {
    let mut text = kind.to_owned();
    // Writing into a `String` does not fail.
    let _ = match (least != lowest, most != highest) {
        (true, true) => write!(text, " from {least} to {most}"),
        (true, false) => write!(text, " of at least {least}"),
        (false, true) => write!(text, " of at most {most}"),
        (false, false) => Ok(()),
    };
    text
}

/// Returns the name most similar to a misspelled one, if any is similar.
pub(crate) fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const MAX_LENGTH: usize = 100;
    if text.len() > MAX_LENGTH {
        return None;
    }
    let text = text.to_lowercase();
    names
        .map(|name| (strsim::jaro_winkler(&text, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}
