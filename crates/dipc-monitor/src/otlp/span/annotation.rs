//! Links and events of activities, as the bridge of .NET 10 writes them; earlier ones write neither.
//!
//! `[(TRACE,SPAN,FLAGS,STATE,REMOTE,[KEY:VALUE,…]),…]` and `[(NAME,TIME,[KEY:VALUE,…]),…]`, in which a
//! zero-width space follows each comma that separates.

use clr_activity::TraceContext;
use jiff::Timestamp;
use otlp_messages::common::KeyValue;
use otlp_messages::trace::span::{Event as SpanEvent, Link};

/// The zero-width space after separators.
const MARK: char = '\u{200b}';
/// Maximum number of links or events of a span, and of attributes of each.
const MAX_ANNOTATIONS: usize = 128;

/// Parses links; links without ids are left out.
pub(super) fn links(list: &str) -> Vec<Link> {
    items(list).filter_map(|item| link(&item)).take(MAX_ANNOTATIONS).collect()
}

/// Parses events; events without a time are left out.
pub(super) fn events(list: &str) -> Vec<SpanEvent> {
    items(list).filter_map(|item| event(&item)).take(MAX_ANNOTATIONS).collect()
}

/// A link or an event.
struct Item<'t> {
    fields: Vec<&'t str>,
    attributes: Vec<KeyValue>,
}

/// The items of a list; empty for other strings, such as the name of a type.
fn items(list: &str) -> impl Iterator<Item = Item<'_>> {
    let inner = list.strip_prefix("[(").and_then(|list| list.strip_suffix(")]")).unwrap_or_default();
    let items = inner.split("),\u{200b}(").filter(|item| !item.is_empty());
    items.map(|item| {
        let (fields, attributes) = match item.split_once(",\u{200b}[") {
            Some((fields, attributes)) => (fields, attributes.strip_suffix(']').unwrap_or(attributes)),
            None => (item, ""),
        };
        let attributes = attributes.split(",\u{200b}").filter_map(|pair| {
            let (key, value) = pair.split_once(':')?;
            Some(KeyValue::new(key, value.trim_start_matches(MARK)))
        });
        Item {
            fields: fields.split(",\u{200b}").collect(),
            attributes: attributes.take(MAX_ANNOTATIONS).collect(),
        }
    })
}

fn link(item: &Item<'_>) -> Option<Link> {
    let (trace, span) = (item.fields.first()?, item.fields.get(1)?);
    let is_recorded = item.fields.get(2).is_some_and(|flags| flags.contains("Recorded"));
    let context = TraceContext::of_hex(trace, span, u8::from(is_recorded))?;
    let state = item.fields.get(3).filter(|state| !state.eq_ignore_ascii_case("null"));
    Some(Link {
        trace_id: context.trace_id.to_vec(),
        span_id: context.span_id.to_vec(),
        trace_state: state.map(|state| (*state).to_owned()).unwrap_or_default(),
        attributes: item.attributes.clone(),
        flags: context.flags.into(),
    })
}

fn event(item: &Item<'_>) -> Option<SpanEvent> {
    let (name, time) = (item.fields.first()?, item.fields.get(1)?);
    let time: Timestamp = time.parse().ok()?;
    Some(SpanEvent {
        time_unix_nano: u64::try_from(time.as_nanosecond()).unwrap_or_default(),
        name: (*name).to_owned(),
        attributes: item.attributes.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> String {
        text.replace(',', ",\u{200b}")
    }

    #[test]
    fn links_have_ids_and_attributes() {
        // The first was written by .NET 10.0.5, the others are from its release notes.
        let list = marked(
            "[(1f329664b3aa37fc04c65da0309c705a,6209c4e249778c23,None,null,false),\
             (19b6e8ea216cb2ba36dd5d957e126d9f,98f7abcb3418f217,Recorded,a=b,false,[alk1:alv1,alk2:x:y])]",
        );
        let [first, second] = &links(&list)[..] else { panic!("{list}") };
        assert_eq!((first.trace_id[0], first.span_id[7], first.flags), (0x1f, 0x23, 0));
        assert_eq!((&*first.trace_state, first.attributes.len()), ("", 0));
        assert_eq!((second.trace_id[0], second.flags, &*second.trace_state), (0x19, 1, "a=b"));
        assert_eq!(second.attributes, [KeyValue::new("alk1", "alv1"), KeyValue::new("alk2", "x:y")]);
    }

    #[test]
    fn events_have_times_and_attributes() {
        let list = marked(
            "[(TestEvent1,2025-03-27T23:34:10.6225721+00:00,[E11:EV1,E12:EV2]),(two,1970-01-01T00:00:01+00:00)]",
        );
        let [first, second] = &events(&list)[..] else { panic!("{list}") };
        assert_eq!((&*first.name, first.time_unix_nano), ("TestEvent1", 1_743_118_450_622_572_100));
        assert_eq!(first.attributes, [KeyValue::new("E11", "EV1"), KeyValue::new("E12", "EV2")]);
        assert_eq!(
            (&*second.name, second.time_unix_nano, second.attributes.len()),
            ("two", 1_000_000_000, 0)
        );
    }

    #[test]
    fn other_strings_are_neither() {
        for list in [
            "",
            "[]",
            "[()]",
            "[(",
            ")]",
            "[(a)]",
            "[(a,\u{200b}b)]",
            "System.Collections.Generic.List`1[System.Diagnostics.ActivityLink]",
            "[(1f329664b3aa37fc04c65da0309c705,\u{200b}6209c4e249778c23)]",
        ] {
            assert!(links(list).is_empty() && events(list).is_empty(), "{list}");
        }
    }
}
