//! Messages about replaced strings.

use nettrace_edit::Redactor;

use crate::render::messages;

/// Reports the replaced and the unreadable fields; `unread` says what happened to the latter.
pub(crate) fn report(redactor: &Redactor, unread: &str) {
    for (field, count) in redactor.replaced() {
        messages::note(format_args!("Redacted       : {field}, {count} strings"));
    }
    if redactor.replaced().is_empty() {
        messages::warning("--redact: no text of these classes and fields was found");
    }
    for (event, count) in redactor.unread() {
        messages::warning(format_args!(
            "{event}: {count} payloads have fields that are not described: {unread}"
        ));
    }
    messages::note(
        "Not examined   : names of methods, types, threads and providers; strings in fields with other names",
    );
}
