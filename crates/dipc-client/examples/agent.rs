//! An agent on a port: every runtime that comes is resumed and recorded for a moment. `agent ADDRESS FOLDER`, and start programs with
//! `DOTNET_DiagnosticPorts=ADDRESS`. It ends when nobody has come for a while.

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::{Deadline, PortEvent, PortRuntime, PortServer, Providers, SessionConfig};

/// How long nobody may come.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long each is recorded.
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
    let (mut file, mut buffer) = (File::create(path)?, vec![0; 1 << 16]);
    let (end, mut stopping) = (Instant::now() + MOMENT, None);
    loop {
        // The runtime answers a stop when it has written what it still holds, which has to be read meanwhile.
        if stopping.is_none() && Instant::now() >= end {
            let stopper = session.stopper();
            stopping = Some(thread::spawn(move || stopper.stop()));
        }
        match session.read(&mut buffer, Deadline::after(Duration::from_millis(100))) {
            Ok(0) => break,
            Ok(count) => file.write_all(&buffer[..count])?,
            Err(error) if error.is_deadline() => {}
            Err(error) => return Err(error.into()),
        }
    }
    println!("{runtime:?}: {} bytes in {}", session.bytes_read(), path.display());
    Ok(())
}
