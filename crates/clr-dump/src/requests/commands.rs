//! Commands that a client of SQL Server executes: those of Microsoft.Data.SqlClient and
//! System.Data.SqlClient.
//!
//! # Source
//! dotnet/SqlClient `src/Microsoft.Data.SqlClient/src/Microsoft/Data/SqlClient/SqlCommand.cs`,
//! `SqlCommand.Reader.cs`, `SqlDataReader.cs`, `SqlConnection.cs`, `TdsParserStateObject.cs`. Measured on
//! System.Data.SqlClient 4.6 and 4.8.

use hashbrown::HashMap;

use crate::dump::Dump;
use crate::heap::object::Value;
use crate::heap::{HeapObject, HeapVisitor};
use crate::memory::address::Address;
use crate::requests::MAX_REQUESTS;
use crate::requests::activity::RequestStart;
use crate::requests::completions::Completions;
use crate::requests::property::{flag, known, number, reference, structure, text};
use crate::requests::reader::RequestReader;
use crate::requests::work::RequestWork;

/// The namespaces of the clients.
const CLIENTS: [&str; 2] = ["Microsoft.Data.SqlClient.", "System.Data.SqlClient."];
const COMMAND: &str = "SqlCommand";
const RESULT: &str = "SqlDataReader";
/// Maximum number of commands and of results to look at.
const MAX_OBJECTS: usize = 1 << 20;
/// Maximum number of characters of a command.
const MAX_TEXT: u32 = 1024;

/// A command that a server executes, or whose rows are read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DatabaseCommand {
    /// The address of the `SqlCommand`.
    pub address: Address,
    /// The server, as the connection's settings name it; `None` if unknown.
    pub server: Option<String>,
    /// The database of the connection; `None` if unknown.
    pub database: Option<String>,
    /// The text: its first 1024 characters; `None` if unknown.
    pub text: Option<String>,
    /// The state.
    pub state: CommandState,
    /// The time at which it was sent; `None` of commands without a timeout, and once rows are read.
    pub started: Option<RequestStart>,
    /// The work on it: the thread, or the chain of awaits with the method that awaits it.
    pub work: RequestWork,
}

/// The state of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandState {
    /// The server executes it, and has not sent a result.
    Executing,
    /// The program waits for rows of a result.
    ReadingRows,
}

/// The commands of a process.
#[derive(Default)]
pub(super) struct Commands {
    pub(super) open: Vec<DatabaseCommand>,
    /// The number of results that are open, and that no method or thread reads from.
    pub(super) unread_results: u64,
    pub(super) is_truncated: bool,
}

/// A command with a session at the server.
struct Execution {
    command: Address,
    /// The open result; `None` before the server has sent one.
    result: Option<Address>,
    /// The state of the session.
    session: Address,
    state: CommandState,
}

impl RequestReader<'_, '_> {
    /// Reads the commands that have not ended.
    pub(super) fn commands(&self) -> Commands {
        let mut objects = ClientObjects { dump: self.dump, found: Vec::new(), is_truncated: false };
        if !self.has_client() || self.dump.heap().walk(&mut objects).is_err() {
            return Commands::default();
        }
        let mut found = Commands { is_truncated: objects.is_truncated, ..Commands::default() };
        let mut executions = HashMap::new();
        for (object, is_result) in objects.found {
            if let Some(of) = if is_result { self.of_result(object) } else { self.of_command(object) } {
                executions.insert(of.command, of);
            }
        }
        let threads = self.client_threads(&executions);
        let completions = Completions::new(self.dump, self.links);
        for of in executions.into_values() {
            let thread = threads.get(&of.session).copied();
            let pending = self.pending(&of);
            let chain = completions.waiters(&pending);
            if of.state == CommandState::ReadingRows && thread.is_none() && chain.is_empty() {
                // The program does something else before it reads on.
                found.unread_results = found.unread_results.saturating_add(1);
                continue;
            }
            found.is_truncated |= found.open.len() >= MAX_REQUESTS;
            if found.open.len() < MAX_REQUESTS {
                let work = match thread {
                    Some(_) => RequestWork { thread, is_running: true, ..RequestWork::default() },
                    None => self.with_waiting_thread(RequestWork::of_chain(chain)),
                };
                found.open.push(self.command(&of, work));
            }
        }
        found
    }

    /// Returns true if the process has a client of SQL Server.
    fn has_client(&self) -> bool {
        let modules = self.dump.types().modules();
        // A single file of NativeAOT has all types in one module.
        self.dump.runtime().is_native_aot()
            || modules.iter().any(|module| {
                let name = module.file_name();
                CLIENTS.iter().any(|client| name.starts_with(client))
            })
    }

    /// The execution of a command that has not begun to return rows.
    fn of_command(&self, command: Address) -> Option<Execution> {
        let session = reference(self.dump, command, "_stateObj")?;
        Some(Execution { command, result: None, session, state: CommandState::Executing })
    }

    /// The execution of the command of an open result.
    fn of_result(&self, result: Address) -> Option<Execution> {
        let dump = self.dump;
        let session = reference(dump, result, "_stateObj")?;
        if flag(dump, result, "_isClosed") != Some(false) {
            return None;
        }
        // A result is bound to the session before the server has answered.
        let state = match flag(dump, result, "_metaDataConsumed") {
            Some(false) => CommandState::Executing,
            _ => CommandState::ReadingRows,
        };
        let command = reference(dump, result, "_command")?;
        Some(Execution { command, result: Some(result), session, state })
    }

    /// The objects by which a command goes on once the server has answered.
    fn pending(&self, of: &Execution) -> Vec<Address> {
        let executed = || reference(self.dump, of.command, "_cachedAsyncState");
        let of_command = of.result.is_none().then(executed).flatten();
        let of_command = of_command.and_then(|state| reference(self.dump, state, "_cachedAsyncResult"));
        let of_session = ["_networkPacketTaskSource", "_writeCompletionSource"]
            .into_iter()
            .filter_map(|name| reference(self.dump, of.session, name));
        let of_result = of.result.and_then(|result| reference(self.dump, result, "_currentTask"));
        of_command.into_iter().chain(of_session).chain(of_result).collect()
    }

    /// The threads in methods of a client, by the session that each works on: the innermost one on its stack.
    fn client_threads(&self, executions: &HashMap<Address, Execution>) -> HashMap<Address, u64> {
        let mut sessions = HashMap::new();
        for of in executions.values() {
            for object in [Some(of.session), of.result, Some(of.command)].into_iter().flatten() {
                sessions.insert(object, of.session);
            }
        }
        let mut threads = HashMap::new();
        for thread in CLIENTS.iter().flat_map(|client| self.threads.with_type(client)) {
            let innermost = self.threads.ordered(thread).find_map(|object| sessions.get(&object).copied());
            if let Some(session) = innermost {
                threads.insert(session, thread.id());
            }
        }
        threads
    }

    fn command(&self, of: &Execution, work: RequestWork) -> DatabaseCommand {
        let dump = self.dump;
        let connection = reference(dump, of.command, "_activeConnection");
        let named = |holder: &str, name: &str| text(dump, reference(dump, connection?, holder)?, name);
        let current = |name| named("_innerConnection", name);
        let configured = |name| named("_userConnectionOptions", name);
        DatabaseCommand {
            address: of.command,
            server: current("CurrentDataSource").or_else(|| configured("_dataSource")),
            database: current("CurrentDatabase").or_else(|| configured("_initialCatalog")),
            text: self.command_text(of.command),
            state: of.state,
            started: (of.state == CommandState::Executing).then(|| self.sent(of, connection)).flatten(),
            work,
        }
    }

    fn command_text(&self, command: Address) -> Option<String> {
        let heap = self.dump.heap();
        let object = heap.object_at(reference(self.dump, command, "_commandText")?)?;
        let text = heap.string(&object, MAX_TEXT.saturating_add(1)).ok()?;
        let limit = usize::try_from(MAX_TEXT).ok()?;
        let is_cut = text.encode_utf16().count() > limit;
        known(text.chars().take(limit).collect(), is_cut)
    }

    /// The time at which a command was sent: that of the end of its timeout, less the timeout.
    fn sent(&self, of: &Execution, connection: Option<Address>) -> Option<RequestStart> {
        /// The year 1601, since which the time is counted, in `DateTime.Ticks`.
        const EPOCH: u64 = 504_911_232_000_000_000;
        const TICKS_PER_SECOND: u64 = 10_000_000;
        let end =
            number(self.dump, of.session, "_timeoutTime").filter(|end| *end < i64::MAX.cast_unsigned())?;
        let of_connection = || {
            let options = reference(self.dump, connection?, "_userConnectionOptions")?;
            number(self.dump, options, "_commandTimeout")
        };
        let timeout = self.timeout(of.command).or_else(of_connection).filter(|timeout| *timeout > 0)?;
        let sent = end.checked_sub(timeout.checked_mul(TICKS_PER_SECOND)?)?;
        Some(RequestStart::Utc(sent.checked_add(EPOCH)?))
    }

    /// The timeout of a command in seconds: a number, or one that newer versions leave out.
    fn timeout(&self, command: Address) -> Option<u64> {
        const FIELD: &str = "_commandTimeout";
        number(self.dump, command, FIELD).or_else(|| {
            let fields = structure(self.dump, command, FIELD)?;
            let value = |name: &str| fields.iter().find(|of| of.field.name == name).map(|of| &of.value);
            match (value("hasValue")?, value("value")?) {
                (Value::Bool(true), Value::Signed(seconds)) => u64::try_from(*seconds).ok(),
                _ => None,
            }
        })
    }
}

/// The commands of a heap, and their results.
struct ClientObjects<'n, 'm> {
    dump: &'n Dump<'m>,
    /// True of a result.
    found: Vec<(Address, bool)>,
    is_truncated: bool,
}

impl HeapVisitor for ClientObjects<'_, '_> {
    fn object(&mut self, object: &HeapObject) {
        let Some(name) = self.dump.types().name(object.type_handle) else { return };
        let Some(own) = CLIENTS.iter().find_map(|client| name.strip_prefix(client)) else { return };
        let is_result = own == RESULT;
        if !is_result && own != COMMAND {
            return;
        }
        self.is_truncated |= self.found.len() >= MAX_OBJECTS;
        if !self.is_truncated {
            self.found.push((object.address, is_result));
        }
    }
}
