//! Any bytes as a recording: names, fields, views, code and stacks of its events.

#![no_main]

use clr_events::code::Code;
use clr_events::csharp::{Detail, async_method, type_name};
use clr_events::{ActivityPath, ClrEvent, CodeFrames, CodeMap, Schema, StackTree, ThreadRoles, event_fields};
use libfuzzer_sys::fuzz_target;
use nettrace::{Event, Fields, SliceReader, Value};

fuzz_target!(|input: &[u8]| {
    let bytes = input.get(4..).unwrap_or_default();
    dipc_fuzz::bounded(bytes.len(), || check(bytes));
});

fn check(bytes: &[u8]) {
    let mut code = CodeMap::with_limit(64 << 20).with_il_offsets();
    let mut roles = ThreadRoles::default();
    each(bytes, |event| {
        code.add(event);
        roles.add(event);
        check_view(event);
    });
    let mut frames = CodeFrames::new(code.symbolizer());
    let mut stacks = StackTree::with_limit(1 << 16);
    each(bytes, |event| {
        let stack = frames.add_stack(event, &mut stacks);
        assert!(stacks.frames(stack).count() <= event.stack().len());
        let path = event.activity().and_then(|id| ActivityPath::new(id, event.process_id()));
        assert!(path.is_none_or(|path| path.segments().count() <= 24));
        roles.get(event.process_id(), event.thread_id());
    });
    for frame in frames.frames() {
        assert!(!frame.to_string().is_empty());
        check_csharp(frame);
        if let Code::Method(method) = frame {
            // An address has the IL offset of the nearest one before it, so the start has one if any address
            // has.
            let end = method.start().saturating_add(method.size().into());
            assert!(method.il_offset(end).is_none() || method.il_offset(method.start()).is_some());
        }
    }
}

/// Checks that a name in C# is some text, no longer than such names can be, whose namespace is its beginning.
fn check_csharp(frame: &Code<'_>) {
    let Some(name) = frame.runtime_name() else { return };
    for detail in [Detail::Short, Detail::Qualified] {
        if let Some(csharp) = name.csharp(detail) {
            assert!(!csharp.text.is_empty() && csharp.text.len() <= 1 << 16, "{name:?}");
            assert!(csharp.text.is_char_boundary(csharp.namespace_len), "{name:?}");
        }
    }
    let _ = (async_method(name.namespace), type_name(name.namespace));
}

fn each(bytes: &[u8], mut each: impl FnMut(&Event<'_>)) {
    if let Ok(mut events) = SliceReader::new(bytes) {
        let _ = events.for_each(|event| each(&event));
    }
}

/// Checks that an event with a view has a schema, and that both read the payload with the same result.
fn check_view(event: &Event<'_>) {
    if let Some(mut fields) = event_fields(event) {
        read_values(&mut fields);
    }
    let Some(schema) = Schema::of(event) else {
        assert!(matches!(ClrEvent::of(event), Ok(None)));
        return;
    };
    let mut fields = schema.fields(event.payload(), event.pointer_size());
    let error = read_values(&mut fields);
    assert!(fields.rest().len() <= event.payload().len());
    match ClrEvent::of(event) {
        Ok(Some(_)) => assert_eq!(error, None),
        Ok(None) => {}
        Err(of_view) => assert_eq!(error, Some(of_view)),
    }
}

/// Reads every value, and returns the first error.
fn read_values(fields: &mut Fields<'_>) -> Option<nettrace::FieldError> {
    for field in fields {
        match field {
            Err(error) => return Some(error),
            Ok((_, Value::Object(mut object))) => assert_eq!(read_values(&mut object), None),
            Ok((_, Value::Array(array))) => {
                assert_eq!(array.len(), array.count());
                for element in array {
                    if let Value::Object(mut object) = element {
                        assert_eq!(read_values(&mut object), None);
                    }
                }
            }
            Ok((_, Value::Named(named))) => assert!(!named.to_string().is_empty()),
            Ok((_, Value::String(text))) => drop(text.to_string()),
            Ok(_) => {}
        }
    }
    None
}
