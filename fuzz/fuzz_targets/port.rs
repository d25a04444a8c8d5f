//! Any bytes from a runtime that connects to a port: its Advertise message, and its answer to a command.

#![no_main]

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Duration;

use dipc_client::dipc_wire::Advertise;
use dipc_client::{Deadline, PortEvent, PortServer, Timeouts};
use libfuzzer_sys::fuzz_target;

/// The longest time of each step. Nothing here waits for anything but the scheduler, also on a busy machine.
const STEP: Duration = Duration::from_secs(60);

fuzz_target!(|input: &[u8]| {
    static PORT: OnceLock<PortServer> = OnceLock::new();
    let port = PORT.get_or_init(|| PortServer::private().expect("a port in a folder of its own"));
    dipc_fuzz::bounded(input.len(), || connect(port, input));
});

/// Connects as a runtime, and checks that the port finds it, or says that it is none.
fn connect(port: &PortServer, input: &[u8]) {
    let path = port.address().path().expect("the port is a socket");
    let (advertise, answer) = input.split_at(input.len().min(Advertise::LEN));
    let Ok(mut stream) = UnixStream::connect(path) else { panic!("the port accepts") };
    let _ = stream.write_all(advertise);
    match Advertise::from_bytes(advertise) {
        Ok(advertise) => answer_command(port, &advertise, stream, answer),
        Err(error) if error.is_incomplete() => {}
        Err(_) => while !matches!(port.next(Deadline::after(STEP)), Ok(PortEvent::Error(_))) {},
    }
}

/// Answers one command of the runtime that the port found with these bytes, and closes the connection.
fn answer_command(port: &PortServer, advertise: &Advertise, mut stream: UnixStream, answer: &[u8]) {
    let cookie = advertise.runtime_cookie;
    let runtime = loop {
        if let Some(runtime) = port.runtimes().into_iter().find(|runtime| runtime.cookie() == cookie) {
            break runtime;
        }
        port.next(Deadline::after(STEP)).expect("the port tells of a runtime that has advertised itself");
    };
    let answer = answer.to_vec();
    let connection = stream.try_clone().expect("a second descriptor");
    let answering = std::thread::spawn(move || {
        let _ = stream.set_read_timeout(Some(STEP));
        if stream.read(&mut [0; 1 << 12]).is_ok() {
            let _ = stream.write_all(&answer);
        }
        let _ = stream.shutdown(Shutdown::Both);
    });
    // A second connection of the same runtime, which some answers have it wait for, does not come.
    let timeouts = Timeouts::each(STEP).with_connect(Duration::from_millis(50));
    if let Err(error) = runtime.target().with_timeouts(timeouts).resume() {
        assert!(!error.to_string().is_empty());
    }
    // The command may have gone to an earlier connection of the runtime, so that this one is asked nothing.
    let _ = connection.shutdown(Shutdown::Both);
    answering.join().expect("the answer is written");
    while port.next(Deadline::after(Duration::ZERO)).is_ok() {}
}
