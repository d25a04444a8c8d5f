//! The fields of an event, as JSON and as text.

use std::io::Write as _;

use clr_events::event_fields;
use nettrace::{Event, Fields};

use super::json;

/// Appends the fields as the member `fields`. False if they do not cover the payload.
pub(super) fn push_member(out: &mut Vec<u8>, event: &Event<'_>) -> bool {
    out.extend_from_slice(b",\"fields\":");
    let Some(mut fields) = event_fields(event) else {
        out.extend_from_slice(b"null");
        return false;
    };
    let limit = json::limit(out, event.payload());
    match json::push_fields(out, &mut fields, limit) {
        Ok(()) => is_complete(&fields),
        Err(error) => {
            out.extend_from_slice(b",\"fields_error\":");
            json::push_str(out, &error.to_string());
            false
        }
    }
}

/// Appends the fields of an event as a JSON object, up to the first that is cut, or to those that with all
/// names of fields would take more than 1 MiB and 256 bytes for each of the payload; nothing if no field list
/// is known. Returns whether they cover the payload.
pub fn push_fields(out: &mut Vec<u8>, event: &Event<'_>) -> bool {
    let Some(mut fields) = event_fields(event) else { return event.payload().is_empty() };
    let limit = json::limit(out, event.payload());
    json::push_fields(out, &mut fields, limit).is_ok() && is_complete(&fields)
}

/// Returns the fields of an event, as its JSON object has them; null if they are not known.
pub fn fields_value(event: &Event<'_>) -> serde_json::Value {
    let mut out = b"{\"name\":null".to_vec();
    push_member(&mut out, event);
    out.push(b'}');
    let object: serde_json::Result<serde_json::Value> = serde_json::from_slice(&out);
    object.map(|mut object| object["fields"].take()).unwrap_or_default()
}

/// Appends the fields as `name=value`. False if they do not cover the payload.
pub(super) fn push_columns(out: &mut Vec<u8>, event: &Event<'_>) -> bool {
    let Some(mut fields) = event_fields(event) else { return false };
    let limit = json::limit(out, event.payload());
    let mut decoded = true;
    for field in fields.by_ref() {
        // Writing into a `Vec` does not fail.
        match field {
            Ok((name, value)) => {
                let _ = write!(out, "  {name}=");
                if !json::push_within(out, value, limit) {
                    let _ = write!(out, "  ({})", json::Incomplete::TooLong);
                    decoded = false;
                    break;
                }
            }
            Err(error) => {
                let _ = write!(out, "  ({error})");
                decoded = false;
            }
        }
    }
    decoded && is_complete(&fields)
}

/// Whether fields that were all read cover the payload: fields that a newer version of the runtime has
/// appended have no names.
const fn is_complete(fields: &Fields<'_>) -> bool {
    fields.is_recorded() || fields.rest().is_empty()
}
