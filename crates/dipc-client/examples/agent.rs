//! An agent on a port: every runtime that connects is resumed and recorded for a moment. `agent ADDRESS
//! FOLDER`, and start programs with `DOTNET_DiagnosticPorts=ADDRESS`. It ends when no runtime has connected
//! for a while.

use std::error::Error;
use std::fs::File;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use dipc_client::{Deadline, PortEvent, PortRuntime, PortServer, Providers, SessionConfig};

/// Maximum wait for a runtime.
const PATIENCE: Duration = Duration::from_secs(2);
/// The duration of each recording.
const MOMENT: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: agent ADDRESS FOLDER".into());
    };
    serve(&PortServer::bind(address.parse::<dipc_client::Address>()?)?, Path::new(&folder))
}

pub(crate) fn serve(port: &PortServer, folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut recordings = Vec::new();
    loop {
        match port.next(Deadline::after(PATIENCE)) {
            Ok(PortEvent::Connected(runtime)) => {
                let path = folder.join(format!("{}.nettrace", runtime.cookie()));
                recordings.push(thread::spawn(move || record(&runtime, &path).map_err(|e| e.to_string())));
            }
            Ok(event) => println!("{event:?}"),
            Err(error) if error.is_deadline() => break,
            Err(error) => return Err(error.into()),
        }
    }
    for recording in recordings {
        recording.join().map_err(|_| "a recording panicked")??;
    }
    Ok(())
}

fn record(runtime: &PortRuntime, path: &Path) -> Result<(), Box<dyn Error>> {
    let target = runtime.target();
    let mut session = target.start_session(&SessionConfig::new(Providers::parse("System.Runtime:0:4")?))?;
    target.resume()?;
    session.stop_after(MOMENT);
    io::copy(&mut session.reader(), &mut File::create(path)?)?;
    println!("{runtime:?}: {} bytes in {}", session.bytes_read(), path.display());
    Ok(())
}
