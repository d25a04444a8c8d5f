//! The fields of an event as text.

use std::io::Write as _;

use clr_events::{event_fields, json};
use nettrace::Event;

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
    if decoded && let Err(error) = json::left_over(&fields) {
        let _ = write!(out, "  ({error})");
    }
    decoded && fields.rest().is_empty()
}
