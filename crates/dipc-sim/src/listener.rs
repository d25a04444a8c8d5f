//! The runtime's own socket, on which clients connect.

use crate::answer::{answer, answer_in_turn};
use crate::client::Client;
use crate::server::Server;
use dipc_transport::{Connection, Deadline, Listener};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread::{self, Scope};
use std::time::Duration;

/// The time within which a client must send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause after a connection that the system could not accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Serves clients until the runtime ends, and returns when the last of their threads has ended.
pub(crate) fn run(server: &Server, mut listener: Listener, path: &Path) {
    thread::scope(|scope| {
        if server.register(listener.canceller()).is_some() {
            while !server.is_ending() {
                match listener.accept(Deadline::never()) {
                    Ok(connection) => serve(server, scope, connection),
                    Err(error) if error.is_cancelled() => break,
                    // The next attempt may succeed, for example after too many open files.
                    Err(_) => thread::sleep(ACCEPT_PAUSE),
                }
            }
        }
        if server.has_died() {
            close_and_keep_socket(listener, path);
        }
    });
}

/// Serves one client: on a thread of its own, or before the next is accepted.
fn serve<'scope>(server: &'scope Server, scope: &'scope Scope<'scope, '_>, connection: Connection) {
    let Some(id) = server.register(connection.canceller()) else { return };
    let mut client = Client::new(server, connection);
    if server.config.serial {
        match client.receive(Deadline::after(REQUEST_TIMEOUT)) {
            Ok(ControlFlow::Continue(received)) => answer_in_turn(server, scope, id, client, received),
            _ => server.unregister(id),
        }
        return;
    }
    server.spawn(scope, id, move || {
        if let Ok(ControlFlow::Continue(received)) = client.receive(Deadline::after(REQUEST_TIMEOUT)) {
            answer(client, received);
        }
    });
}

/// Closes a listener, but keeps its socket file, as a killed process does.
pub(crate) fn close_and_keep_socket(listener: Listener, path: &Path) {
    let aside = path.with_extension("dead");
    let moved = fs::rename(path, &aside);
    drop(listener);
    if moved.is_ok() {
        // Without the file that this creates, a test of a stale socket fails.
        let _ = fs::rename(&aside, path);
    }
}
