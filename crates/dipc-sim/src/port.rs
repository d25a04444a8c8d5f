//! A port that somebody else listens on: the runtime connects to it.

use crate::client::Client;
use crate::server::Server;
use dipc_transport::{Address, Connection, Deadline, PeerCheck};
use dipc_wire::Advertise;
use std::ops::ControlFlow;
use std::thread::{self, Scope};
use std::time::Duration;

/// Between two attempts to connect the runtime rests so long at first,
const FIRST_REST: Duration = Duration::from_millis(10);
/// so many times as long after each that fails,
const GROWTH: f64 = 1.25;
/// and never longer than this.
const LONGEST_REST: Duration = Duration::from_millis(500);
/// How long an attempt to connect, or to say who it is, may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects, says who it is, waits for a command, and so on, until the end of the runtime.
pub(crate) fn run(server: &Server, address: &Address) {
    thread::scope(|scope| {
        let mut rest = FIRST_REST;
        while !server.is_ending() {
            if offer(server, scope, address).is_some() {
                rest = FIRST_REST;
            } else {
                server.rest(rest);
                rest = rest.mul_f64(GROWTH).min(LONGEST_REST);
            }
        }
    });
}

/// Makes one connection, and has the command answered that comes on it, on a thread of its own. `None` if none came.
fn offer<'scope>(server: &'scope Server, scope: &'scope Scope<'scope, '_>, address: &Address) -> Option<()> {
    let deadline = Deadline::after(PATIENCE);
    let mut connection = Connection::connect(address, PeerCheck::Any, deadline).ok()?;
    let identity = &server.behaviour.identity;
    let advertise = Advertise {
        runtime_cookie: identity.runtime_cookie,
        process_id: identity.process_id.into(),
        future: 0,
    };
    connection.write_all(&advertise.to_bytes().ok()?, deadline).ok()?;
    let id = server.register(connection.canceller())?;
    let mut client = Client::new(server, connection);
    if let Ok(ControlFlow::Continue(request)) = client.receive(Deadline::never()) {
        server.spawn(scope, id, move || client.converse(request));
        return Some(());
    }
    server.forget(id);
    None
}
