//! Awaits: the pending `async` methods, the operation that each awaits, and its waiters.
//!
//! # Source
//! As in `async_type`; `src/libraries/System.Private.CoreLib/src/System/Threading/Tasks/Sources/
//! ManualResetValueTaskSourceCore.cs` for sources of `ValueTask`.

use std::time::Instant;

use hashbrown::{HashMap, HashSet};

use crate::awaits::Awaits;
use crate::awaits::async_roles::Roles;
use crate::awaits::async_type::{AsyncRole, MethodBox, StateMachine, TaskFields};
use crate::awaits::chain::{self, ChainEnd};
use crate::dump::Dump;
use crate::heap::{HeapObject, HeapVisitor, HeapWalk};
use crate::memory::MemoryResult;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::touched::TouchedMemory;
use crate::types::method::Method;
use crate::types::names::HAS_COMPONENT_SIZE;

/// Maximum number of objects of a graph.
const MAX_NODES: usize = 1 << 22;
/// Maximum number of continuations of a task.
const MAX_CONTINUATIONS: u32 = 1 << 20;
/// Maximum number of operations with their methods.
const MAX_OPERATIONS: usize = 1 << 16;
/// Maximum number of continuation objects between a task and its waiter.
const MAX_LINKS: u32 = 8;
/// Maximum number of calls of a chain that the runtime suspended.
const MAX_CALLS: usize = 1 << 12;
/// Maximum number of bytes of an object to search for the continuation of a `ValueTask`.
const MAX_SEARCHED_BYTES: u64 = 4096;
/// Maximum number of objects to search for a method's resumer.
const MAX_REFERRERS: usize = 1 << 20;

/// The bit of a task's state for a delegate that has been called.
const RUNNING: u32 = 0x0002_0000;

/// An object in a chain of awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitNode {
    /// The address of the object.
    pub address: Address,
    /// The address of its MethodTable.
    pub type_handle: TypeHandle,
    /// The object's role in the chain.
    pub kind: AwaitKind,
}

/// The part of an object in a chain of awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AwaitKind {
    /// An `async` method: the box of its state machine.
    Method {
        /// The type of the state machine; `None` if the memory lacks it.
        state_machine: Option<TypeHandle>,
        /// The number that the compiler gave the `await` at which the method is, from zero in the order of
        /// the source; negative while it runs. `None` if unknown.
        state: Option<i32>,
    },
    /// A call of an `async` method that the runtime suspended by itself (.NET 11): such methods have no state
    /// machines.
    SuspendedCall {
        /// The address in the method's code at which it is: for
        /// [`suspended_method`](Awaits::suspended_method).
        at: Address,
    },
    /// A task that does not belong to an `async` method.
    Task {
        /// The delegate that the task runs.
        action: Option<Address>,
        /// True if the delegate has been called.
        is_running: bool,
        /// The state of `Task.Delay`.
        delay: Option<Delay>,
    },
    /// The source of a `ValueTask`, such as an operation of a socket.
    Source,
    /// A delegate that is called in the end.
    Callback,
    /// The event of a thread that waits, by `Task.Wait` and the like.
    Thread,
    /// Another object.
    Other,
}

impl AwaitKind {
    /// Returns true for calls of `async` methods.
    pub const fn is_method(self) -> bool {
        matches!(self, Self::Method { .. } | Self::SuspendedCall { .. })
    }
}

/// The state of the timer of a `Task.Delay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delay {
    /// The delay has not elapsed; its length in milliseconds.
    Running(u32),
    /// The delay has elapsed, but its task has not ended: it is waiting for a thread of the pool.
    Elapsed,
}

/// The chains of awaits of a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AwaitChains {
    /// The groups of equal chains, most frequent first.
    pub groups: Vec<AwaitGroup>,
    /// The number of all chains.
    pub chains: u64,
    /// The number of `async` methods that have not ended.
    pub methods: u64,
    /// The operations that the innermost methods await, with these methods; a part of them if
    /// [`is_truncated`](Self::is_truncated).
    pub operations: Vec<AwaitedOperation>,
    /// True if the limits cut off objects or chains.
    pub is_truncated: bool,
    /// The walk through the heap, with its gaps.
    pub walk: HeapWalk,
}

/// An operation that itself awaits nothing, and an `async` method that awaits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitedOperation {
    /// The operation, such as a task.
    pub operation: AwaitNode,
    /// The method: an [`AwaitKind::Method`] or an [`AwaitKind::SuspendedCall`].
    pub method: AwaitNode,
}

/// Chains that are alike: the same methods at the same `await`, that wait for the same kind of object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitGroup {
    /// The number of chains.
    pub count: u64,
    /// The objects of the group's first chain. The first object waits for none of the others; every other
    /// object waits for its predecessor.
    pub nodes: Vec<AwaitNode>,
    /// The end of the chains.
    pub end: ChainEnd,
}

impl Awaits<'_> {
    /// Reads the `async` methods that have not ended, and tasks that something waits for, as chains.
    ///
    /// The heap is walked once, and a second time with all references if methods wait for something that is
    /// not a task.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for group in dump.awaits().chains()?.groups {
    ///     let first = group.nodes.first().and_then(|node| dump.types().name(node.type_handle));
    ///     println!("{} chains such as of {first:?}, which end with {:?}", group.count, group.end);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn chains(self) -> MemoryResult<AwaitChains> {
        Self::read(self.dump)
    }

    /// Reads the chains as [`chains`](Self::chains) does, until `end` at most: the memory that has not been
    /// read by then counts as missing.
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn chains_until(self, end: Instant) -> MemoryResult<AwaitChains> {
        let memory = TouchedMemory::new(self.memory()).until(end);
        Self::read(&self.dump.with_memory(&memory))
    }

    /// Returns the method of a node that is an [`AwaitKind::SuspendedCall`];
    /// `None` for other nodes, and if the memory lacks the way to it.
    pub fn suspended_method(self, node: &AwaitNode) -> Option<Method> {
        let AwaitKind::SuspendedCall { at } = node.kind else { return None };
        let code = self.runtime().code().find(self.memory(), at).ok()??;
        self.dump.types().method(&code)
    }

    fn read(dump: &Dump<'_>) -> MemoryResult<AwaitChains> {
        let (graph, walk) = Graph::read(dump)?;
        Ok(AwaitChains { walk, ..graph.chains() })
    }

    /// Reads the objects that take part in awaits, with the links between them.
    pub(crate) fn links(self) -> MemoryResult<AwaitLinks> {
        let (graph, walk) = Graph::read(self.dump)?;
        let mut awaited = vec![Vec::new(); graph.nodes.len()];
        for (node, waiters) in graph.waiters.iter().enumerate() {
            for waiter in waiters {
                if let Some(awaited) = awaited.get_mut(*waiter) {
                    awaited.push(node);
                }
            }
        }
        let Graph { nodes, waiters, is_full, .. } = graph;
        Ok(AwaitLinks { nodes, waiters, awaited, is_full, walk })
    }
}

/// The objects that take part in awaits, with the links between them by their indexes.
pub(crate) struct AwaitLinks {
    pub(crate) nodes: Vec<AwaitNode>,
    /// The waiters of each node.
    pub(crate) waiters: Vec<Vec<usize>>,
    /// The nodes that each node waits for.
    pub(crate) awaited: Vec<Vec<usize>>,
    /// True if a limit cut off nodes.
    pub(crate) is_full: bool,
    pub(crate) walk: HeapWalk,
}

impl AwaitLinks {
    /// A node and those that wait for it, as long as one waits for the last: `most` at most.
    pub(crate) fn waiters_from(&self, node: usize, most: usize) -> Vec<AwaitNode> {
        let mut seen = vec![node];
        let mut at = node;
        while let Some([waiter]) = self.waiters.get(at).map(|waiters| &waiters[..]) {
            if seen.len() >= most || seen.contains(waiter) {
                break;
            }
            seen.push(*waiter);
            at = *waiter;
        }
        seen.into_iter().filter_map(|index| self.nodes.get(index).copied()).collect()
    }
}

impl<'n, 'm> Graph<'n, 'm> {
    fn read(dump: &'n Dump<'m>) -> MemoryResult<(Self, HeapWalk)> {
        let mut found = Found {
            roles: Roles::new(dump),
            boxes: Vec::new(),
            tasks: Vec::new(),
            actions: HashMap::new(),
            is_full: false,
        };
        let walk = dump.heap().walk(&mut found)?;
        let Found { roles, boxes, tasks, actions, is_full } = found;
        let mut graph = Graph {
            roles,
            nodes: Vec::new(),
            index: HashMap::new(),
            waiters: Vec::new(),
            suspended: HashMap::new(),
            outermost: HashMap::new(),
            is_full,
        };
        for (address, type_handle) in boxes.into_iter().chain(tasks) {
            if graph.first_call(address).is_none() {
                graph.node(address, type_handle);
            }
        }
        for node in 0..graph.nodes.len() {
            graph.add_waiters(node);
        }
        graph.add_sources(&actions)?;
        Ok((graph, walk))
    }
}

/// The objects of a heap that take part in awaits.
struct Found<'n, 'm> {
    roles: Roles<'n, 'm>,
    boxes: Vec<(Address, TypeHandle)>,
    /// Tasks of other kinds that something waits for.
    tasks: Vec<(Address, TypeHandle)>,
    /// Delegates that resume a method, with the box of the method.
    actions: HashMap<Address, Address>,
    is_full: bool,
}

impl HeapVisitor for Found<'_, '_> {
    fn object(&mut self, object: &HeapObject) {
        let (address, memory) = (object.address, self.roles.dump.memory());
        let found = match &*self.roles.of(object.type_handle) {
            AsyncRole::Method(of) => {
                let is_completed =
                    of.task.as_ref().is_some_and(|task| self.roles.is_completed(address, task));
                if !is_completed {
                    self.boxes.push((address, object.type_handle));
                }
                self.boxes.len()
            }
            AsyncRole::Task(fields) => {
                let is_set = |at| memory.u64(address.at(at)).is_ok_and(|of| of != 0);
                let is_awaited = is_set(fields.continuation) || fields.suspended.is_some_and(is_set);
                if is_awaited && !self.roles.is_completed(address, fields) {
                    self.tasks.push((address, object.type_handle));
                }
                self.tasks.len()
            }
            AsyncRole::Delegate => {
                let target = self.roles.dump.heap().delegate_target(address).unwrap_or_default();
                if !target.is_null() && self.roles.of_object(target).is_method() {
                    self.actions.insert(address, target);
                }
                self.actions.len()
            }
            _ => return,
        };
        self.is_full |= found >= MAX_NODES;
        if self.is_full {
            self.boxes.truncate(MAX_NODES);
            self.tasks.truncate(MAX_NODES);
        }
    }
}

/// The objects of chains, with the waiters of each.
struct Graph<'n, 'm> {
    roles: Roles<'n, 'm>,
    nodes: Vec<AwaitNode>,
    index: HashMap<Address, usize>,
    waiters: Vec<Vec<usize>>,
    /// The tasks of calls that the runtime suspended, with the node of the innermost call; `None` while its
    /// calls run.
    suspended: HashMap<Address, Option<usize>>,
    /// The nodes of outermost suspended calls, with their tasks, which end with them.
    outermost: HashMap<usize, Address>,
    is_full: bool,
}

impl Graph<'_, '_> {
    /// The index of an object's node; `None` if the graph is full.
    fn node(&mut self, address: Address, type_handle: TypeHandle) -> Option<usize> {
        if let Some(index) = self.index.get(&address) {
            return Some(*index);
        }
        let kind = self.kind(address, type_handle);
        self.add_node(address, type_handle, kind)
    }

    /// Adds a node that the graph does not have; `None` if it is full.
    fn add_node(&mut self, address: Address, type_handle: TypeHandle, kind: AwaitKind) -> Option<usize> {
        if self.nodes.len() >= MAX_NODES {
            self.is_full = true;
            return None;
        }
        let index = self.nodes.len();
        self.nodes.push(AwaitNode { address, type_handle, kind });
        self.waiters.push(Vec::new());
        self.index.insert(address, index);
        Some(index)
    }

    /// The node of the innermost suspended call of a task; `None` for tasks of other kinds, and while the
    /// calls run. Adds the nodes of all its calls.
    fn first_call(&mut self, task: Address) -> Option<usize> {
        if let Some(first) = self.suspended.get(&task) {
            return *first;
        }
        let role = self.roles.of_object(task);
        let AsyncRole::Task(TaskFields { suspended: Some(at), .. }) = &*role else {
            return None;
        };
        let memory = self.roles.dump.memory();
        let mut calls = Vec::new();
        let mut call = memory.pointer(task.at(*at)).unwrap_or_default();
        let mut left = MAX_CALLS;
        while let (AsyncRole::Continuation(fields), false) = (&*self.roles.of_object(call), call.is_null()) {
            let Some(fewer) = left.checked_sub(1) else {
                self.is_full = true;
                break;
            };
            left = fewer;
            let Ok((ip, next)) = self.roles.dump.awaits().suspended_call(call, *fields) else { break };
            // The runtime's own, for the task or source that is awaited, have no code.
            if let (Some(at), Ok(type_handle)) = (ip, self.roles.type_of(call))
                && let Some(node) = self.add_node(call, type_handle, AwaitKind::SuspendedCall { at })
            {
                calls.push(node);
            }
            call = next;
        }
        for pair in calls.windows(2) {
            if let [awaited, waiter] = pair
                && let Some(waiters) = self.waiters.get_mut(*awaited)
            {
                waiters.push(*waiter);
            }
        }
        let first = calls.first().copied();
        self.suspended.insert(task, first);
        if let Some(last) = calls.last() {
            self.outermost.insert(*last, task);
        }
        first
    }

    fn kind(&mut self, address: Address, type_handle: TypeHandle) -> AwaitKind {
        let memory = self.roles.dump.memory();
        match &*self.roles.of(type_handle) {
            AsyncRole::Method(of) => {
                let (state_machine, state) = self.roles.state(address, of);
                AwaitKind::Method { state_machine, state }
            }
            AsyncRole::Task(TaskFields { suspended: Some(_), .. }) => {
                AwaitKind::Task { action: None, is_running: true, delay: None }
            }
            AsyncRole::Task(fields) => {
                let action =
                    memory.pointer(address.at(fields.action)).ok().filter(|action| !action.is_null());
                let flags = memory.u32(address.at(fields.flags)).unwrap_or_default();
                let timer = fields.timer.and_then(|timer| memory.pointer(address.at(timer)).ok());
                AwaitKind::Task {
                    action,
                    is_running: flags & RUNNING != 0,
                    delay: timer
                        .filter(|timer| !timer.is_null())
                        .and_then(|timer| self.delay(timer))
                        // The delay of a running process may have elapsed, and its task ended, since it was
                        // found.
                        .filter(|delay| {
                            *delay != Delay::Elapsed || !self.roles.is_completed(address, fields)
                        }),
                }
            }
            AsyncRole::Delegate | AsyncRole::SourceContinuation => AwaitKind::Callback,
            AsyncRole::ThreadEvent => AwaitKind::Thread,
            _ => AwaitKind::Other,
        }
    }

    /// The state of the timer of a delay.
    fn delay(&self, timer: Address) -> Option<Delay> {
        /// The time of a timer that is not in the queue because it has fired. An infinite delay uses no
        /// timer.
        const NONE: u32 = u32::MAX;
        let of = self.roles.type_of(timer).ok()?;
        let place = self.roles.dump.types().field_offset(of, "_dueTime")?;
        Some(match self.roles.dump.memory().u32(timer.at(place)).ok()? {
            NONE => Delay::Elapsed,
            milliseconds => Delay::Running(milliseconds),
        })
    }

    /// Adds the waiters of a method or a task.
    fn add_waiters(&mut self, node: usize) {
        let Some(mut of) = self.nodes.get(node).copied() else { return };
        if let Some(task) = self.outermost.get(&node) {
            let Ok(type_handle) = self.roles.type_of(*task) else { return };
            of = AwaitNode { address: *task, type_handle, ..of };
        }
        let AwaitNode { address, type_handle, .. } = of;
        let memory = self.roles.dump.memory();
        let mut waiters = Vec::new();
        match &*self.roles.of(type_handle) {
            AsyncRole::Task(fields) | AsyncRole::Method(MethodBox { task: Some(fields), .. }) => {
                if let Ok(continuation) = memory.pointer(address.at(fields.continuation)) {
                    self.resolve(continuation, MAX_LINKS, &mut waiters);
                }
            }
            // A pooled box is the source of its ValueTask.
            AsyncRole::Method(_) => self.source_waiters(address, &mut waiters),
            _ => {}
        }
        if let AsyncRole::Method(MethodBox { state_machine: Some(StateMachine::Reference { at }), .. }) =
            &*self.roles.of(type_handle)
            && let Ok(machine) = memory.pointer(address.at(*at))
        {
            // That of an async iterator is the source of its next element.
            self.source_waiters(machine, &mut waiters);
        }
        for waiter in waiters {
            self.add_waiter(node, waiter);
        }
    }

    fn add_waiter(&mut self, node: usize, waiter: Address) {
        let Ok(type_handle) = self.roles.type_of(waiter) else { return };
        let is_completed = match &*self.roles.of(type_handle) {
            AsyncRole::Task(fields) | AsyncRole::Method(MethodBox { task: Some(fields), .. }) => {
                self.roles.is_completed(waiter, fields)
            }
            _ => false,
        };
        if is_completed {
            return;
        }
        let call = self.first_call(waiter);
        let Some(index) = call.or_else(|| self.node(waiter, type_handle)) else { return };
        if let Some(waiters) = self.waiters.get_mut(node)
            && index != node
        {
            waiters.push(index);
        }
    }

    /// Adds the objects that a continuation resumes.
    fn resolve(&mut self, continuation: Address, links_left: u32, waiters: &mut Vec<Address>) {
        let (Some(links_left), false) = (links_left.checked_sub(1), continuation.is_null()) else { return };
        let Ok(type_handle) = self.roles.type_of(continuation) else { return };
        let dump = self.roles.dump;
        let memory = dump.memory();
        match &*self.roles.of(type_handle) {
            AsyncRole::Method(_) | AsyncRole::Task(_) | AsyncRole::ThreadEvent => waiters.push(continuation),
            AsyncRole::Delegate | AsyncRole::SourceContinuation => {
                let before = waiters.len();
                let target = dump.heap().delegate_target(continuation).unwrap_or_default();
                match &*self.roles.of_object(target) {
                    role if role.is_method() => waiters.push(target),
                    // A wrapper, which has the delegate that it wraps.
                    AsyncRole::Other => self.follow_links(target, links_left, waiters),
                    _ => {}
                }
                if waiters.len() == before {
                    waiters.push(continuation);
                }
            }
            AsyncRole::List { items, count } => {
                let count = memory.u32(continuation.at(*count)).unwrap_or_default();
                let Ok(array) = memory.pointer(continuation.at(*items)) else { return };
                for index in 0..u64::from(count.min(MAX_CONTINUATIONS)) {
                    // An array has its elements after its length.
                    let at = array.at(index.wrapping_mul(8).wrapping_add(16));
                    let Ok(item) = memory.pointer(at) else { break };
                    self.resolve(item, links_left, waiters);
                }
            }
            AsyncRole::Continuation(_) | AsyncRole::Other => {
                let before = waiters.len();
                self.follow_links(continuation, links_left, waiters);
                // A plain object marks a task that has ended.
                let is_mark = dump.types().name(type_handle).as_deref() == Some("System.Object");
                if waiters.len() == before && !is_mark {
                    waiters.push(continuation);
                }
            }
        }
    }

    /// Follows the fields of a continuation object to the objects that it resumes.
    fn follow_links(&mut self, object: Address, links_left: u32, waiters: &mut Vec<Address>) {
        let Ok(type_handle) = self.roles.type_of(object) else { return };
        for link in self.roles.dump.awaits().continuation_links(type_handle) {
            let before = waiters.len();
            if let Ok(next) = self.roles.dump.memory().pointer(object.at(link)) {
                self.resolve(next, links_left, waiters);
            }
            if waiters.len() > before {
                return;
            }
        }
    }

    /// Adds the waiters of the source of a `ValueTask`: the object after an `Action<object>`, which is called
    /// with it.
    fn source_waiters(&mut self, source: Address, waiters: &mut Vec<Address>) {
        let words = self.words(source);
        for pair in words.windows(2) {
            let [continuation, waiter] = pair else { continue };
            if !continuation.is_null()
                && !waiter.is_null()
                && matches!(&*self.roles.of_object(*continuation), AsyncRole::SourceContinuation)
                && matches!(
                    &*self.roles.of_object(*waiter),
                    AsyncRole::Method(_) | AsyncRole::Task(_) | AsyncRole::Delegate
                )
            {
                self.resolve(*waiter, MAX_LINKS, waiters);
                return;
            }
        }
    }

    /// The first words of an object after its type; none of an array.
    fn words(&self, object: Address) -> Vec<Address> {
        let memory = self.roles.dump.memory();
        let size = || {
            let type_handle = self.roles.type_of(object)?;
            let has_length = memory.u32(type_handle.get())? & HAS_COMPONENT_SIZE != 0;
            Ok(if has_length { 0 } else { memory.u32(type_handle.at(4))? })
        };
        let size: MemoryResult<u32> = size();
        let size = u64::from(size.unwrap_or_default()).saturating_sub(16).min(MAX_SEARCHED_BYTES);
        let bytes = memory.bytes(object.at(8), usize::try_from(size).unwrap_or_default());
        bytes
            .unwrap_or_default()
            .as_chunks()
            .0
            .iter()
            .map(|word| Address::new(u64::from_le_bytes(*word)))
            .collect()
    }

    /// Adds the resumers of methods that no task resumes: sources of `ValueTask`, and objects that have the
    /// delegate of a method.
    fn add_sources(&mut self, actions: &HashMap<Address, Address>) -> MemoryResult<()> {
        let waiting: HashSet<usize> = self.waiters.iter().flatten().copied().collect();
        // A method that runs has nothing that resumes it.
        let is_suspended = |state: Option<i32>| state.is_none_or(|state| !(-2..0).contains(&state));
        let is_method =
            |node: &AwaitNode| matches!(node.kind, AwaitKind::Method { state, .. } if is_suspended(state));
        let methods = self.nodes.iter().enumerate().filter(|(_, node)| is_method(node));
        let methods = methods.map(|(index, node)| (node.address, index));
        let calls = self.suspended.iter().filter_map(|(task, first)| Some((*task, (*first)?)));
        let orphans: HashMap<Address, usize> =
            methods.chain(calls).filter(|(_, index)| !waiting.contains(index)).collect();
        if orphans.is_empty() {
            return Ok(());
        }
        let mut targets = orphans.clone();
        targets.extend(actions.iter().filter_map(|(action, method)| Some((*action, *orphans.get(method)?))));
        let mut referrers =
            Referrers { targets, last: (Address::default(), TypeHandle::default()), found: Vec::new() };
        let dump = self.roles.dump;
        dump.heap().walk(&mut referrers)?;
        self.is_full |= referrers.found.len() >= MAX_REFERRERS;
        let mut resumed = HashSet::new();
        // The caller of a method's continuation says more than the holder of its delegate.
        let mut others = Vec::new();
        for referrer in referrers.found {
            let mut waiters = Vec::new();
            match &*self.roles.of(referrer.type_handle) {
                // The referrer waits for the method, or is the method's delegate.
                AsyncRole::Method(_) | AsyncRole::Task(_) | AsyncRole::Delegate => continue,
                _ => self.source_waiters(referrer.address, &mut waiters),
            }
            if waiters.iter().any(|waiter| orphans.get(waiter) == Some(&referrer.method)) {
                if resumed.insert(referrer.method) {
                    self.add_source(&referrer, AwaitKind::Source);
                }
            } else if actions.contains_key(&referrer.target) {
                others.push(referrer);
            }
        }
        for referrer in others {
            if resumed.insert(referrer.method) {
                self.add_source(&referrer, AwaitKind::Other);
            }
        }
        Ok(())
    }

    fn add_source(&mut self, referrer: &Referrer, kind: AwaitKind) {
        let Some(index) = self.node(referrer.address, referrer.type_handle) else { return };
        if let Some(node) = self.nodes.get_mut(index) {
            node.kind = kind;
        }
        if let Some(waiters) = self.waiters.get_mut(index) {
            waiters.push(referrer.method);
        }
    }

    /// The part of a node that makes chains alike.
    fn label(&self, node: &AwaitNode) -> (TypeHandle, AwaitKind) {
        match node.kind {
            // Each has a delegate of its own.
            AwaitKind::Task { action, is_running, delay } => {
                let entry = action.and_then(|action| self.roles.dump.heap().delegate_entry(action));
                (node.type_handle, AwaitKind::Task { action: entry, is_running, delay })
            }
            kind => (node.type_handle, kind),
        }
    }

    /// The operations that await nothing, with the methods that await them.
    fn operations(&self) -> Vec<AwaitedOperation> {
        let waiting: HashSet<usize> = self.waiters.iter().flatten().copied().collect();
        let is_method = |node: &AwaitNode| node.kind.is_method();
        let mut operations = Vec::new();
        for (index, (operation, waiters)) in self.nodes.iter().zip(&self.waiters).enumerate() {
            if is_method(operation) || waiting.contains(&index) {
                continue;
            }
            let methods = waiters.iter().filter_map(|waiter| self.nodes.get(*waiter));
            for method in methods.filter(|node| is_method(node)) {
                if operations.len() < MAX_OPERATIONS {
                    operations.push(AwaitedOperation { operation: *operation, method: *method });
                }
            }
        }
        operations
    }

    fn chains(self) -> AwaitChains {
        let labels: Vec<_> = self.nodes.iter().map(|node| self.label(node)).collect();
        let chains = chain::chains(&self.waiters, &labels);
        let is_method = |node: &&AwaitNode| node.kind.is_method();
        let methods = self.nodes.iter().filter(is_method).count();
        let group = |group: chain::Group| AwaitGroup {
            count: group.count,
            nodes: group.nodes.iter().filter_map(|index| self.nodes.get(*index).copied()).collect(),
            end: group.end,
        };
        AwaitChains {
            operations: self.operations(),
            chains: chains.count,
            methods: u64::try_from(methods).unwrap_or(u64::MAX),
            is_truncated: self.is_full || chains.is_truncated,
            groups: chains.groups.into_iter().map(group).collect(),
            ..AwaitChains::default()
        }
    }
}

/// A reference to a method's box or to its delegate.
struct Referrer {
    address: Address,
    type_handle: TypeHandle,
    target: Address,
    /// The index of the method's node.
    method: usize,
}

/// The objects that refer to methods.
struct Referrers {
    /// The boxes and delegates of methods, with the index of each method's node.
    targets: HashMap<Address, usize>,
    last: (Address, TypeHandle),
    found: Vec<Referrer>,
}

impl HeapVisitor for Referrers {
    fn object(&mut self, object: &HeapObject) {
        self.last = (object.address, object.type_handle);
    }

    fn reference(&mut self, target: Address) {
        if let Some(method) = self.targets.get(&target)
            && self.found.len() < MAX_REFERRERS
        {
            let (address, type_handle) = self.last;
            self.found.push(Referrer { address, type_handle, target, method: *method });
        }
    }

    fn wants_references(&self) -> bool {
        true
    }
}
