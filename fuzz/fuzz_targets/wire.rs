//! Any bytes, in any portions: the reader of messages takes no more than it was given, and what it makes of them survives being
//! written again.

#![no_main]

use dipc_wire::{Feed, MessageReader, Request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&portion, bytes)) = input.split_first() else { return };
    let mut reader = MessageReader::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (mut fed, later) = rest.split_at(rest.len().min(usize::from(portion).max(1)));
        rest = later;
        while !fed.is_empty() {
            match reader.feed(fed) {
                Err(_) => return,
                Ok(Feed::NeedMore(more)) => {
                    assert!(more > 0);
                    break;
                }
                Ok(Feed::Message { message, used }) => {
                    assert!(used <= fed.len());
                    fed = &fed[used..];
                    if let Ok(request) = Request::decode(&message) {
                        let _ = request.to_bytes();
                    }
                }
            }
        }
    }
});
