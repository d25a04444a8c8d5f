//! Types that take part in awaits: their roles, and the offsets of the fields that link them.
//!
//! # Source
//! dotnet/runtime `src/libraries/System.Private.CoreLib/src/System/Threading/Tasks/Task.cs`,
//! `TaskContinuation.cs`, `System/Runtime/CompilerServices/AsyncTaskMethodBuilderT.cs`,
//! `PoolingAsyncValueTaskMethodBuilderT.cs`; `AsyncHelpers.CoreCLR.cs` for calls that the
//! runtime suspends; dotnet/roslyn `GeneratedNames` for the fields of state machines.

use crate::awaits::Awaits;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{MemoryResult, offset};
use crate::types::Types;
use crate::types::field::{Field, ValueKind};

/// The boxes of state machines.
const BOXES: [&str; 3] = [
    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1",
    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+DebugFinalizableAsyncStateMachineBox`1",
    "System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder`1+StateMachineBox`1",
];
/// The events that threads wait for in `Task.Wait` and `Task.WaitAll`.
const THREAD_EVENTS: [&str; 2] =
    ["System.Threading.Tasks.Task+SetOnInvokeMres", "System.Threading.Tasks.Task+SetOnCountdownMres"];
/// The fields of continuation objects that lead to the waiting object.
const LINKS: [&str; 3] = ["m_task", "m_action", "_continuation"];
/// The task of `async` methods that the runtime suspends by itself (.NET 11), without state machines.
pub(crate) const RUNTIME_TASK: &str = "System.Runtime.CompilerServices.AsyncHelpers+RuntimeAsyncTask`1";
/// The suspended call of such a method, of which the runtime makes subtypes.
const CONTINUATION: &str = "System.Runtime.CompilerServices.Continuation";
/// The offset of `DiagnosticIP` in a `ResumeInfo`.
const DIAGNOSTIC_IP: u64 = 8;
/// The completion bits in a task's state: one is set once the task has ended.
pub(crate) const COMPLETED: u32 = 0x0160_0000;
/// The fields with the state of a state machine, of the C# and Visual Basic compilers and of Mono's.
pub(crate) const STATES: [&str; 3] = ["<>1__state", "$State", "$PC"];

/// The role of a type in awaits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AsyncRole {
    /// The box of an `async` method's state machine, which is its task in most cases.
    Method(MethodBox),
    /// A task of another kind.
    Task(TaskFields),
    /// A call that the runtime suspended.
    Continuation(ContinuationFields),
    /// A delegate.
    Delegate,
    /// `Action<object>`: the continuation of a `ValueTask` source.
    SourceContinuation,
    /// An event that a thread waits for.
    ThreadEvent,
    /// A list of continuations.
    List { items: u64, count: u64 },
    /// None of these.
    Other,
}

impl AsyncRole {
    /// Returns true for objects that stand for `async` methods: boxes of state machines, and tasks of calls
    /// that the runtime suspends.
    pub(crate) const fn is_method(&self) -> bool {
        matches!(self, Self::Method(_) | Self::Task(TaskFields { suspended: Some(_), .. }))
    }
}

/// The offsets of fields in a task, from the address of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskFields {
    pub(crate) continuation: u64,
    pub(crate) flags: u64,
    pub(crate) action: u64,
    /// The timer of `Task.Delay`.
    pub(crate) timer: Option<u64>,
    /// The innermost suspended call; `None` for tasks of other kinds.
    pub(crate) suspended: Option<u64>,
}

/// The offsets of fields in a suspended call, from the address of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContinuationFields {
    /// The call that awaits it.
    next: u64,
    resume_info: u64,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskState {
    /// True if the task has ended.
    pub is_completed: bool,
    /// True if the task's delegate is running.
    pub is_running: bool,
    /// The object that continues after the task, or a list of such objects; null if nothing does.
    pub continuation: Address,
}

/// A box of a state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MethodBox {
    /// The box's task fields; `None` for a pooled box, which is not a task.
    pub(crate) task: Option<TaskFields>,
    pub(crate) state_machine: Option<StateMachine>,
}

/// The place of a state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateMachine {
    /// A structure in the box, and its type.
    Inline { at: u64, type_handle: TypeHandle },
    /// An object that the box refers to.
    Reference { at: u64 },
}

impl Awaits<'_> {
    /// Reads the role of a type.
    pub(crate) fn role(self, type_handle: TypeHandle) -> AsyncRole {
        let Some(name) = self.dump.types().name(type_handle) else { return AsyncRole::Other };
        let own = name.split('[').next().unwrap_or_default();
        if BOXES.contains(&own) {
            let fields = self.dump.types().fields(type_handle);
            let task = TaskFields::new(&fields);
            return AsyncRole::Method(MethodBox { task, state_machine: state_machine(&fields) });
        }
        if THREAD_EVENTS.contains(&&*name) {
            return AsyncRole::ThreadEvent;
        }
        match &*name {
            "System.Action`1[System.Object]" => return AsyncRole::SourceContinuation,
            "System.Collections.Generic.List`1[System.Object]" => {
                let fields = self.dump.types().fields(type_handle);
                let at = |name| place(&fields, name);
                if let (Some(items), Some(count)) = (at("_items"), at("_size")) {
                    return AsyncRole::List { items, count };
                }
            }
            _ => {}
        }
        match self.known_base(type_handle) {
            Some(Base::Delegate) => AsyncRole::Delegate,
            Some(Base::Task) => {
                let fields = self.dump.types().fields(type_handle);
                let suspended = (own == RUNTIME_TASK).then(|| place(&fields, "m_stateObject")).flatten();
                match TaskFields::new(&fields) {
                    Some(task) => AsyncRole::Task(TaskFields { suspended, ..task }),
                    None => AsyncRole::Other,
                }
            }
            Some(Base::Continuation) => {
                let fields = self.dump.types().fields(type_handle);
                match (place(&fields, "Next"), place(&fields, "ResumeInfo")) {
                    (Some(next), Some(resume_info)) => {
                        AsyncRole::Continuation(ContinuationFields { next, resume_info })
                    }
                    _ => AsyncRole::Other,
                }
            }
            None => AsyncRole::Other,
        }
    }

    /// Returns the state of a task; `None` for other objects.
    pub fn task(self, object: Address) -> Option<TaskState> {
        /// The bits of a task's state for a delegate that has been called.
        const RUNNING: u32 = 0x0002_0000;
        let type_handle = self.dump.heap().type_of(object)?;
        self.known_base(type_handle).filter(|base| matches!(base, Base::Task))?;
        let fields = TaskFields::new(&self.dump.types().fields(type_handle))?;
        let flags = self.memory().u32(object.at(fields.flags)).ok()?;
        Some(TaskState {
            is_completed: flags & COMPLETED != 0,
            is_running: flags & RUNNING != 0,
            continuation: self.memory().pointer(object.at(fields.continuation)).ok()?,
        })
    }

    fn known_base(self, type_handle: TypeHandle) -> Option<Base> {
        let known = |of: &TypeHandle| match self.dump.types().name(*of).as_deref() {
            Some("System.Threading.Tasks.Task") => Some(Base::Task),
            Some("System.MulticastDelegate") => Some(Base::Delegate),
            Some(CONTINUATION) => Some(Base::Continuation),
            _ => None,
        };
        self.dump.types().type_and_bases(type_handle).iter().find_map(known)
    }

    /// Reads a suspended call: the address in the code of its method at which it is, and the call that awaits
    /// it. The address is `None` for calls of the runtime's own.
    pub(crate) fn suspended_call(
        self,
        call: Address,
        fields: ContinuationFields,
    ) -> MemoryResult<(Option<Address>, Address)> {
        let memory = self.memory();
        let next = memory.pointer(call.at(fields.next))?;
        let info = memory.pointer(call.at(fields.resume_info))?;
        let ip = if info.is_null() { info } else { memory.pointer(info.at(DIAGNOSTIC_IP))? };
        Ok((Some(ip).filter(|ip| !ip.is_null()), next))
    }

    /// The offsets of the fields that lead from a continuation object to the waiting object.
    pub(crate) fn continuation_links(self, type_handle: TypeHandle) -> Vec<u64> {
        let fields = self.dump.types().fields(type_handle);
        LINKS.iter().filter_map(|name| place(&fields, name)).collect()
    }
}

impl Types<'_> {
    /// The offset of the state in a state machine of a type, from its first field.
    pub(crate) fn state_offset(self, state_machine: TypeHandle) -> Option<u64> {
        let fields = self.fields(state_machine);
        let state = fields.iter().find(|field| STATES.contains(&&*field.name))?;
        Some(state.offset.into())
    }

    /// The offset of the named field in an object.
    pub(crate) fn field_offset(self, type_handle: TypeHandle, name: &str) -> Option<u64> {
        place(&self.fields(type_handle), name)
    }
}

/// A base type that gives a role.
enum Base {
    Task,
    Delegate,
    Continuation,
}

impl TaskFields {
    fn new(fields: &[Field]) -> Option<Self> {
        Some(Self {
            continuation: place(fields, "m_continuationObject")?,
            flags: place(fields, "m_stateFlags")?,
            action: place(fields, "m_action")?,
            timer: place(fields, "_timer"),
            suspended: None,
        })
    }
}

/// The offset of a field, from the address of the object.
fn place(fields: &[Field], name: &str) -> Option<u64> {
    fields.iter().find(|field| field.name == name).map(|field| offset(field.offset.into(), 8))
}

fn state_machine(fields: &[Field]) -> Option<StateMachine> {
    let field = fields.iter().find(|field| field.name == "StateMachine")?;
    let at = offset(field.offset.into(), 8);
    match (field.kind, field.value_type) {
        (ValueKind::STRUCTURE, Some(type_handle)) => Some(StateMachine::Inline { at, type_handle }),
        (ValueKind::STRUCTURE, None) => None,
        _ => Some(StateMachine::Reference { at }),
    }
}
