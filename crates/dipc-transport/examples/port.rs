//! A diagnostic port that any number of runtimes may connect to: `port ADDRESS`, and start programs with
//! `DOTNET_DiagnosticPorts=ADDRESS`. Prints connections, their first bytes and their ends, until its standard
//! input ends.

use std::io::Read as _;
use std::process::ExitCode;

use dipc_transport::{Deadline, Error, Hub, HubEvent};

fn main() -> ExitCode {
    let Some(address) = std::env::args().nth(1) else {
        eprintln!("usage: port ADDRESS");
        return ExitCode::from(2);
    };
    match serve(&address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(address: &str) -> Result<(), Error> {
    if let Ok(Some(limit)) = dipc_transport::raise_descriptor_limit() {
        eprintln!("descriptors: {:?}, were {:?}", limit.now, limit.before);
    }
    let mut hub = Hub::bind(address.parse::<dipc_transport::Address>()?)?;
    println!("listening {}", hub.address());
    let canceller = hub.canceller();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        canceller.cancel();
    });
    loop {
        match hub.next(Deadline::never()) {
            Ok(HubEvent::Accepted(token)) => {
                let peer = hub.peer(token).map(|peer| peer.to_string());
                println!("accepted {token:?} {}", peer.unwrap_or_default());
            }
            Ok(HubEvent::Readable(token)) => {
                // An advertisement has 34 bytes.
                let mut buffer = [0; 64];
                if let Some(count) = hub.read(token, &mut buffer)? {
                    println!("{token:?} sent {:?}", String::from_utf8_lossy(&buffer[..count]));
                }
            }
            Ok(HubEvent::Closed(token)) => println!("closed {token:?}"),
            Ok(_) => {}
            Err(error) if error.is_cancelled() => return Ok(()),
            Err(error) => eprintln!("{error}"),
        }
    }
}
