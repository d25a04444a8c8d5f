//! Any bytes as requests to the simulated runtime: each connection is answered or closed, and what is
//! answered is a message.

#![no_main]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dipc_sim::{Runtime, Version};
use dipc_wire::{CommandSet, Feed, MessageReader};
use libfuzzer_sys::fuzz_target;

/// The longest time of each step. Nothing here waits for anything but the scheduler, also on a busy machine.
const STEP: Duration = Duration::from_secs(60);

fuzz_target!(|input: &[u8]| {
    static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    // Some requests end a runtime, such as a startup hook that is not there.
    if runtime.as_ref().is_some_and(Runtime::has_died) {
        // The one that has ended removes its socket, which has the name of the next one.
        *runtime = None;
    }
    let runtime = runtime.get_or_insert_with(start);
    // A dump would be written to the path that the bytes name.
    let mut request = MessageReader::new();
    if let Ok(Feed::Message { message, .. }) = request.feed(input)
        && message.header.command.set == CommandSet::DUMP
    {
        return;
    }
    dipc_fuzz::bounded(input.len(), || ask(runtime, input));
});

/// Sends requests over a connection, and reads the answer to the first.
fn ask(runtime: &Runtime, input: &[u8]) {
    let mut stream = UnixStream::connect(runtime.endpoint_path()).expect("the runtime accepts");
    stream.set_read_timeout(Some(STEP)).expect("a time-out");
    let _ = stream.write_all(input);
    let _ = stream.shutdown(Shutdown::Write);
    let mut reader = MessageReader::new();
    loop {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => break,
            // By libFuzzer's alarm.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => panic!("neither answered nor closed: {error}"),
        }
        // Behind the first message may come the stream of a session, which goes on until it is stopped.
        if matches!(reader.feed(&byte).expect("an answer is a message"), Feed::Message { .. }) {
            break;
        }
    }
}

fn start() -> Runtime {
    let folder = std::env::temp_dir().join(format!("dipc-fuzz-simulator-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder in the one for temporary files");
    Runtime::builder().version(Version::NET9).start_in(&folder).expect("it starts")
}
