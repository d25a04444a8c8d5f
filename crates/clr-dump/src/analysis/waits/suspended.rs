//! Suspended `async` methods that could let others go on: they have a call that does so after their `await`
//! or before it, and the object is in a field of their state machine, or in reach of one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::awaited::{ANY_PROMISES, SEMAPHORE_TASK};
use super::finder::{Finder, is_name_of_program};
use super::primitive::Primitive;
use super::signaler::{MAX_OBJECTS, MAX_REFERENCES, Signalers};
use super::{SignaledObject, ThreadWait, WaitedFor};
use crate::awaits::graph::{AwaitKind, AwaitLinks, AwaitNode};
use crate::awaits::machine::Machines;
use crate::memory::MemoryResult;
use crate::memory::address::{Address, TypeHandle};
use crate::types::method::Method;
use crate::types::receivers::Call;

/// Maximum number of suspended methods with calls that let others go on.
const MAX_METHODS: usize = 1 << 12;
/// Maximum number of objects from a method to the ends of its awaits.
const MAX_AWAITS: usize = 1 << 10;

/// The table of the methods that a program defines, as the first byte of a token.
const METHOD: u32 = 0x0600_0000;
const SEMAPHORE_SLIM: &str = "System.Threading.SemaphoreSlim";
/// The methods that enter a semaphore.
const ENTER: [&str; 2] = ["WaitAsync", "Wait"];

/// A suspended `async` method that could let others go on, with its own wait.
pub(super) struct SuspendedMethod {
    pub(super) node: AwaitNode,
    /// `None` if it awaits what nothing is known of.
    pub(super) wait: Option<ThreadWait>,
    /// The index of the node.
    at: usize,
    /// The objects that it could signal.
    signals: Vec<Address>,
}

/// The type of a state machine, or the address in the code of a suspended call.
type MethodKey = (TypeHandle, Address);

fn method_key(node: &AwaitNode) -> Option<MethodKey> {
    match node.kind {
        AwaitKind::Method { state_machine: Some(machine), state: None | Some(0..) } => {
            Some((machine, Address::default()))
        }
        AwaitKind::SuspendedCall { at } => Some((TypeHandle::default(), at)),
        _ => None,
    }
}

/// Types of objects, and their methods that let others go on.
type SignalKey = (&'static [&'static str], &'static [&'static str]);

/// A method with calls that let others go on.
struct Signaling {
    method: Method,
    calls: BTreeMap<SignalKey, Vec<Call>>,
}

/// The suspended methods of a heap.
pub(super) struct Suspended<'f> {
    finder: &'f Finder<'f>,
    signalers: Signalers<'f>,
    links: AwaitLinks,
    machines: RefCell<Machines<'f, 'f>>,
    /// The semaphores that tasks wait for, by task.
    semaphores: BTreeMap<Address, Address>,
    /// The threads that run tasks.
    runners: BTreeMap<Address, usize>,
}

impl<'f> Suspended<'f> {
    pub(super) fn read(finder: &'f Finder<'f>) -> MemoryResult<Self> {
        let links = finder.dump.awaits().links()?;
        let heap = finder.dump.heap();
        let is_of_semaphore =
            |node: &AwaitNode| heap.type_name(node.address).as_deref() == Some(SEMAPHORE_TASK);
        let mut semaphores = BTreeMap::new();
        if links.nodes.iter().any(is_of_semaphore) {
            for semaphore in heap.awaited_semaphores()? {
                semaphores.extend(semaphore.tasks.iter().map(|task| (*task, semaphore.address)));
            }
        }
        let mut runners = BTreeMap::new();
        for (index, thread) in finder.threads.iter().enumerate() {
            runners.extend(finder.running_tasks(thread).into_iter().map(|task| (task, index)));
        }
        Ok(Self {
            finder,
            signalers: Signalers::new(finder),
            links,
            machines: RefCell::new(Machines::new(finder.dump)),
            semaphores,
            runners,
        })
    }

    /// Adds the semaphores that tasks alone wait for, with the threads that could signal them.
    pub(super) fn add_semaphores(&self, signaled: &mut BTreeMap<Address, SignaledObject>) {
        let awaited: BTreeSet<Address> = self.semaphores.values().copied().collect();
        for object in awaited {
            let Some(of) = Primitive::of_type(SEMAPHORE_SLIM).filter(|_| signaled.len() < MAX_OBJECTS) else {
                break;
            };
            signaled.entry(object).or_insert_with(|| {
                let could = |index: &usize| self.signalers.could(*index, object, of.types, of.signals);
                let owners = (0..self.finder.threads.len()).filter(could).collect();
                SignaledObject { kind: of.kind, signals: of.signals, owners }
            });
        }
    }

    /// Finds the methods that could signal objects, and adds them to the owners of these, with indexes after
    /// those of threads. None if some can be missing: any of these could let all go on.
    pub(super) fn methods(&self, signaled: &mut BTreeMap<Address, SignaledObject>) -> Vec<SuspendedMethod> {
        let mut methods = Vec::new();
        let mut known: HashMap<MethodKey, Option<Signaling>> = HashMap::new();
        let mut looked_at = 0_usize;
        for (at, node) in self.links.nodes.iter().enumerate() {
            let Some(key) = method_key(node) else { continue };
            let of = known.entry(key).or_insert_with(|| self.signaling(node, signaled)).as_ref();
            let Some(of) = of else { continue };
            looked_at = looked_at.saturating_add(1);
            if looked_at > MAX_METHODS {
                return Vec::new();
            }
            let signals = self.signaled_by(node, of, signaled);
            if !signals.is_empty() {
                methods.push(SuspendedMethod { node: *node, wait: self.wait_of(at), at, signals });
            }
        }
        if self.is_incomplete() {
            return Vec::new();
        }
        for (number, method) in methods.iter().enumerate() {
            let index = self.finder.threads.len().saturating_add(number);
            for object in &method.signals {
                let waits_for_it = method.wait.as_ref().is_some_and(|wait| wait.object == *object);
                if let Some(of) = signaled.get_mut(object)
                    && (!waits_for_it || self.has_entered(method, *object))
                {
                    of.owners.push(index);
                }
            }
        }
        methods
    }

    /// The method of the program that a node is.
    fn method(&self, node: &AwaitNode) -> Option<Method> {
        let types = self.finder.dump.types();
        match node.kind {
            AwaitKind::Method { state_machine: Some(machine), state: None | Some(0..) } => {
                types.name(machine).filter(|name| is_name_of_program(name))?;
                let (module, row) = types.method_of_type(machine, "MoveNext")?;
                Some(Method { module: Some(module), token: Some(METHOD | row), name: None })
            }
            AwaitKind::SuspendedCall { .. } => {
                let method = self.finder.dump.awaits().suspended_method(node)?;
                let is_of_program =
                    method.name.as_ref().is_some_and(|name| is_name_of_program(&name.type_name));
                is_of_program.then_some(method)
            }
            _ => None,
        }
    }

    /// Returns the calls by which a method could let others go on; `None` if it has none.
    fn signaling(&self, node: &AwaitNode, signaled: &BTreeMap<Address, SignaledObject>) -> Option<Signaling> {
        let method = self.method(node)?;
        let mut calls: BTreeMap<SignalKey, Vec<Call>> = BTreeMap::new();
        for (object, of) in signaled {
            let Some(primitive) = self.signalers.primitive(*object) else { continue };
            let find = || self.finder.dump.types().calls_of(&method, primitive.types, of.signals);
            calls.entry((primitive.types, of.signals)).or_insert_with(find);
        }
        calls.retain(|_, calls| !calls.is_empty());
        (!calls.is_empty()).then_some(Signaling { method, calls })
    }

    /// The objects that a method could signal.
    fn signaled_by(
        &self,
        node: &AwaitNode,
        of: &Signaling,
        signaled: &BTreeMap<Address, SignaledObject>,
    ) -> Vec<Address> {
        let is_signaled = |object: &Address| {
            let key = || Some((self.signalers.primitive(*object)?.types, signaled.get(object)?.signals));
            let calls = key().and_then(|key| of.calls.get(&key));
            let could_be = |call: &Call| self.receiver(node, call).is_none_or(|of| of == *object);
            calls.is_some_and(|calls| calls.iter().any(could_be))
        };
        let mut reached = self.signalers.reached(&of.method, &self.objects_of(node));
        reached.retain(is_signaled);
        reached.into_iter().collect()
    }

    /// Returns true if methods can be missing: a limit was reached, or a part of the heap could not be read.
    fn is_incomplete(&self) -> bool {
        /// The part of a heap that may be missing: objects that are being made while threads run.
        const PARTS: u64 = 16;
        let AwaitLinks { nodes, walk, is_full, .. } = &self.links;
        let read = walk.objects.bytes.saturating_add(walk.free.bytes);
        let memory = self.finder.dump.memory();
        // Memory that is read for a limited time is missing afterwards.
        let is_missing = || nodes.first().is_some_and(|node| memory.pointer(node.address.get()).is_err());
        *is_full || walk.is_moving || walk.missing_bytes() > read / PARTS || is_missing()
    }

    /// The objects that the fields of a method's state machine refer to.
    fn objects_of(&self, node: &AwaitNode) -> Vec<Address> {
        let mut machines = self.machines.borrow_mut();
        match machines.of(node) {
            Some(machine) => machines.references(&machine).into_iter().map(|(_, object)| object).collect(),
            None => self.finder.dump.heap().references_of(node.address, MAX_REFERENCES),
        }
    }

    /// The object that a method calls another on; `None` if unknown.
    fn receiver(&self, node: &AwaitNode, call: &Call) -> Option<Address> {
        let mut machines = self.machines.borrow_mut();
        let machine = machines.of(node)?;
        let mut fields = call.receiver.as_ref()?.iter();
        let first = machines.reference(&machine, fields.next()?)?;
        fields.try_fold(first, |object, field| self.finder.dump.heap().reference_field(object, field))
    }

    /// Returns true if a method has entered a semaphore, and leaves it after the method that it awaits: its
    /// instructions have the one call before the `await`, and the other after it.
    fn has_entered(&self, of: &SuspendedMethod, object: Address) -> bool {
        let node = &of.node;
        let Some((method, place)) = self.finder.dump.awaits().await_place(node) else { return false };
        let calls = |names: &[&str]| self.finder.dump.types().calls_of(&method, &[SEMAPHORE_SLIM], names);
        let is_on_it = |call: &Call| self.receiver(node, call) == Some(object);
        let entered = calls(&ENTER).into_iter().filter(is_on_it).filter(|call| call.offset < place).count();
        let leaves = calls(&["Release"]).iter().any(|call| call.offset > place && is_on_it(call));
        // The last call that enters is the one that it awaits.
        let enters = self.is_at(of.at, object);
        leaves && entered > usize::from(enters)
    }

    /// Returns true for a method that itself awaits a semaphore.
    fn is_at(&self, method: usize, semaphore: Address) -> bool {
        let awaited = self.links.awaited.get(method).into_iter().flatten();
        let mut nodes = awaited.filter_map(|index| self.links.nodes.get(*index));
        nodes.any(|of| self.semaphores.get(&of.address) == Some(&semaphore))
    }

    /// The wait of a method: the end of its awaits. Of several, all of which have to end, a task that a
    /// thread runs, or else a semaphore.
    fn wait_of(&self, index: usize) -> Option<ThreadWait> {
        let mut seen = BTreeSet::new();
        let mut open: VecDeque<_> = self.links.awaited.get(index)?.iter().copied().collect();
        let mut semaphore = None;
        while let Some(index) = open.pop_front().filter(|_| seen.len() < MAX_AWAITS) {
            if !seen.insert(index) {
                continue;
            }
            let object = self.links.nodes.get(index)?.address;
            if let Some(thread) = self.runners.get(&object) {
                return Some(ThreadWait::new(WaitedFor::Task, object, vec![*thread]));
            }
            semaphore = semaphore.or(self.semaphores.get(&object).copied());
            let name = self.finder.dump.heap().type_name(object).unwrap_or_default();
            if !ANY_PROMISES.iter().any(|promise| name.contains(promise)) {
                open.extend(self.links.awaited.get(index)?);
            }
        }
        let of = Primitive::of_type(SEMAPHORE_SLIM)?;
        let wait =
            |object| ThreadWait { signals: of.signals, ..ThreadWait::new(of.kind, object, Vec::new()) };
        semaphore.map(wait)
    }
}
