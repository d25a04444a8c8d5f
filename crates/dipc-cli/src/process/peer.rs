//! The process at an address that the user named.

use dipc_client::{ProcessView, Target};
use dipc_transport::{Connection, Deadline, PeerCheck, SocketName, start_key};

use crate::exit::{Exit, Failure};

/// Returns the process of a runtime: `pid` if it is known, else the process that listens at its address.
///
/// # Errors
/// If the address does not show the process, or the process is not visible from here.
pub(crate) fn local_process(pid: Option<u32>, target: &Target) -> Result<u32, Failure> {
    pid.map_or_else(|| listener(target), Ok)
}

/// Returns the process that listens at the address of a runtime, by the kernel, if it is the runtime's.
fn listener(target: &Target) -> Result<u32, Failure> {
    let address = target.address();
    let unknown = |reason: &str| {
        let message = format!("find: {address}: the process is not known: {reason}");
        Failure::new(Exit::NotReachable, message)
            .with_help("where dipc sees the process, -p selects it by its id")
    };
    let Some(path) = address.path() else { return Err(unknown("only a local socket shows it")) };
    let deadline = Deadline::after(target.timeouts().connect);
    let peer = Connection::connect(address, PeerCheck::Any, deadline)?.peer();
    let pid = peer.pid.ok_or_else(|| unknown("it is in another pid namespace, as in another container"))?;
    let own_id = ProcessView::of(pid).own_id();
    let is_same = match target.info() {
        Ok(info) => Some(info.process_id) == own_id,
        // .NET Core 3.1 does not know the command, and others may not be able to send their command line, but
        // the socket has the start time of the process.
        Err(error) if error.is_answer() => {
            let name = path.file_name().and_then(SocketName::parse);
            name.is_some_and(|name| Some(name.pid.into()) == own_id && start_key(pid).ok() == Some(name.key))
        }
        Err(error) => return Err(error.into()),
    };
    if is_same { Ok(pid) } else { Err(unknown(&format!("process {pid} listens there for another one"))) }
}
