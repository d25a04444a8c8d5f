//! Any bytes, in any portions: the decoder ends, and reads only what it was given.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nettrace::Decoder;

fuzz_target!(|input: &[u8]| {
    let Some((&portion, bytes)) = input.split_last() else { return };
    let mut decoder = Decoder::new();
    for fed in bytes.chunks(usize::from(portion).max(1) * 16) {
        decoder.feed(fed);
        if read(&mut decoder).is_err() {
            return;
        }
    }
    decoder.end_of_input();
    let _ = read(&mut decoder);
});

fn read(decoder: &mut Decoder) -> Result<(), nettrace::Error> {
    while let Some(event) = decoder.next()? {
        for field in event.fields() {
            let _ = field;
        }
        event.stack().for_each(drop);
    }
    Ok(())
}
