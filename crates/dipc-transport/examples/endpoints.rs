//! Lists the diagnostic endpoints of this machine, and with `-v` the skipped files and the reasons.

use std::time::Duration;

use dipc_transport::{Deadline, discover};

fn main() {
    let discovery = discover();
    for endpoint in &discovery.endpoints {
        let reached = match endpoint.connect(Deadline::after(Duration::from_secs(1))) {
            Ok(connection) => format!("reached {}", connection.peer()),
            Err(error) => error.to_string(),
        };
        println!("{:>7} {:15} {} ({reached})", endpoint.pid, endpoint.name, endpoint.path.display());
    }
    if std::env::args().any(|argument| argument == "-v") {
        for skipped in &discovery.skipped {
            println!("skipped: {skipped}");
        }
    }
}
