//! A port to which the runtime connects.

use crate::answer::answer_in_turn;
use crate::client::Client;
use crate::server::Server;
use dipc_transport::{Address, Connection, Deadline, PeerCheck};
use dipc_wire::Advertise;
use std::ops::ControlFlow;
use std::thread::{self, Scope};
use std::time::Duration;

/// The pause after the first failed attempt to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The factor by which each further failure extends the pause.
const PAUSE_GROWTH: f64 = 1.25;
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// The deadline of an attempt to connect and advertise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects, advertises and waits for a command, in a loop until the runtime ends.
pub(crate) fn run(server: &Server, address: &Address) {
    thread::scope(|scope| {
        let mut pause = FIRST_PAUSE;
        while !server.is_ending() {
            if connect(server, scope, address).is_some() {
                pause = FIRST_PAUSE;
            } else {
                server.sleep(pause);
                pause = pause.mul_f64(PAUSE_GROWTH).min(MAX_PAUSE);
            }
        }
    });
}

/// Connects once, and answers the command that arrives; `None` if none arrives.
fn connect<'scope>(
    server: &'scope Server,
    scope: &'scope Scope<'scope, '_>,
    address: &Address,
) -> Option<()> {
    let deadline = Deadline::after(CONNECT_TIMEOUT);
    let mut connection = Connection::connect(address, PeerCheck::Any, deadline).ok()?;
    let identity = &server.config.identity;
    let advertise = Advertise::new(identity.runtime_cookie, identity.process_id.into());
    connection.write_all(&advertise.to_bytes().ok()?, deadline).ok()?;
    let id = server.register(connection.canceller())?;
    let mut client = Client::new(server, connection);
    if let Ok(ControlFlow::Continue(received)) = client.receive(Deadline::never()) {
        answer_in_turn(server, scope, id, client, received);
        return Some(());
    }
    server.unregister(id);
    None
}
