//! The event that ends a recording.

use clr_events::event_name;
use clr_events::json::push_fields_member;
use nettrace::{Event, Record};
use serde_json::Value;

use crate::render::messages;

/// The conditions for an event to end a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoppingEvent {
    pub(crate) provider: String,
    /// The name of the event; `None` for any event of the provider.
    pub(crate) name: Option<String>,
    /// Fields and values that the event must all have.
    pub(crate) payload: Vec<PayloadField>,
}

/// A field and its value, as `NAME:VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PayloadField {
    name: String,
    value: String,
}

impl StoppingEvent {
    /// Returns true if the event ends the recording. Names match in any case, fields and values exactly,
    /// except `True` and `true`.
    fn matches(&self, event: &Event<'_>) -> bool {
        self.provider.eq_ignore_ascii_case(event.provider())
            && self.name.as_ref().is_none_or(|name| event_name(event).matches(name))
            && self.matches_payload(event)
    }

    fn matches_payload(&self, event: &Event<'_>) -> bool {
        if self.payload.is_empty() {
            return true;
        }
        let fields = fields_value(event);
        self.payload.iter().all(|wanted| match fields.get(&wanted.name) {
            Some(Value::String(text)) => *text == wanted.value,
            Some(value) => value.to_string().eq_ignore_ascii_case(&wanted.value),
            None => false,
        })
    }
}

/// The search of a stream for the event that ends its recording.
#[derive(Debug, Default)]
pub(crate) struct StoppingEventSearch {
    wanted: Option<StoppingEvent>,
    /// The provider and the name of the first event that matches.
    found: Option<String>,
}

impl StoppingEventSearch {
    /// Searches for an event, or for nothing.
    pub(crate) const fn new(wanted: Option<StoppingEvent>) -> Self {
        Self { wanted, found: None }
    }

    /// Takes the next event of the stream.
    pub(crate) fn add(&mut self, event: &Event<'_>) {
        if self.found.is_none() && self.wanted.as_ref().is_some_and(|wanted| wanted.matches(event)) {
            self.found = Some(format!("{}/{}", event.provider(), event_name(event)));
        }
    }

    /// Takes the next record of the stream.
    pub(crate) fn add_record(&mut self, record: &Record<'_>) {
        if let Record::Event(event) = record {
            self.add(event);
        }
    }

    /// The provider and the name of the event, once it was found.
    pub(crate) fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// Prints a note that names the event.
    pub(crate) fn report(&self) {
        if let Some(event) = &self.found {
            messages::note(format_args!("Stopping event : {event}"));
        }
    }
}

/// Returns the fields of an event in JSON; null if they are unknown.
fn fields_value(event: &Event<'_>) -> Value {
    let mut out = b"{\"name\":null".to_vec();
    push_fields_member(&mut out, event);
    out.push(b'}');
    let object: serde_json::Result<Value> = serde_json::from_slice(&out);
    object.ok().and_then(|mut object| Some(object.get_mut("fields")?.take())).unwrap_or_default()
}

impl std::str::FromStr for PayloadField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').unwrap_or_default();
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || value.is_empty() {
            return Err(format!("'{text}' is not of the form FIELD:VALUE"));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_a_name_and_a_value_which_may_have_colons() {
        let field = |name: &str, value: &str| Ok(PayloadField { name: name.into(), value: value.into() });
        assert_eq!("id:3".parse(), field("id", "3"));
        assert_eq!(" url : http://a/b ".parse(), field("url", "http://a/b"));
        for wrong in ["", "id", "id:", ":3", ":"] {
            let error = wrong.parse::<PayloadField>().unwrap_err();
            assert!(error.contains("FIELD:VALUE"), "{error}");
        }
    }
}
