//! The threads that could let others go on which wait for an object without a recorded holder: they are in a
//! method with a call that does so, and the object is on the stack of this method, in a field that it reads
//! of an object there, in an array there, or in a static field that it reads.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;
use std::sync::Arc;

use super::finder::{Finder, is_of_program};
use super::primitive::Primitive;
use super::{SignaledObject, ThreadWait, WaitedFor};
use crate::heap::object::Value;
use crate::memory::address::Address;
use crate::types::calls::FieldsRead;
use crate::types::method::Method;

/// Maximum number of objects with waiters to find the threads of.
pub(super) const MAX_OBJECTS: usize = 256;
/// Maximum number of objects on a stack to search for references.
const MAX_STACK_OBJECTS: usize = 1 << 12;
/// Maximum number of references of an object.
pub(super) const MAX_REFERENCES: usize = 256;
/// Bytes of the frame of a thread's outermost method.
const OUTERMOST_FRAME: u64 = 256;
/// The module and the token of a method.
type MethodKey = (Address, u32);

/// The search for threads that could let others go on.
pub(super) struct Signalers<'f> {
    finder: &'f Finder<'f>,
    known: RefCell<Known>,
}

/// Facts that are read once.
#[derive(Debug, Default)]
struct Known {
    /// Objects on the stack of a method and of those that it calls, by the indexes of thread and frame.
    objects: HashMap<(usize, usize), Arc<Vec<Address>>>,
    /// Methods with a call, by the name of the first type and the first method.
    calls: HashMap<(MethodKey, &'static str, &'static str), bool>,
    fields: HashMap<MethodKey, Arc<FieldsRead>>,
}

fn key(method: &Method) -> Option<MethodKey> {
    Some((method.module.as_ref()?.address, method.token?))
}

impl<'f> Signalers<'f> {
    pub(super) fn new(finder: &'f Finder<'f>) -> Self {
        Self { finder, known: RefCell::default() }
    }

    /// Adds the threads that could let others go on, and returns the objects without a recorded holder.
    pub(super) fn add(&self, waits: &mut [Option<ThreadWait>]) -> BTreeMap<Address, SignaledObject> {
        let mut found: BTreeMap<Address, SignaledObject> = BTreeMap::new();
        for wait in waits.iter_mut().flatten().filter(|wait| wait.owners.is_empty()) {
            // A task that waits for an object does not state which thread will signal it.
            if wait.awaited.is_some() {
                wait.signals = self.primitive(wait.end()).map_or(&[][..], |of| of.signals);
            }
            let own = (wait.end(), wait.signals);
            let others = wait.other_handles().iter();
            let others = others.filter_map(|other| Some((*other, self.primitive(*other)?.signals)));
            for (object, signals) in iter::once(own).chain(others) {
                let of = self.primitive(object).filter(|_| !signals.is_empty() && found.len() < MAX_OBJECTS);
                found.extend(
                    of.map(|of| (object, SignaledObject { kind: of.kind, signals, owners: Vec::new() })),
                );
            }
        }
        for (object, of) in &mut found {
            let waits_for_it = |index: usize| {
                let wait = waits.get(index).and_then(Option::as_ref);
                wait.is_some_and(|wait| wait.end() == *object || wait.other_handles().contains(object))
            };
            let types = self.primitive(*object).map_or(&[][..], |of| of.types);
            let could =
                |index: &usize| !waits_for_it(*index) && self.could(*index, *object, types, of.signals);
            of.owners = (0..self.finder.threads.len()).filter(could).collect();
        }
        for wait in waits.iter_mut().flatten().filter(|wait| wait.is_any() && wait.owners.is_empty()) {
            wait.add_signalers(&found);
        }
        found
    }

    /// The kind of an object that threads wait for.
    pub(super) fn primitive(&self, object: Address) -> Option<&'static Primitive> {
        Primitive::of_type(&self.finder.dump.heap().type_name(object)?)
    }

    /// Returns true if a thread could call one of the methods on an object.
    pub(super) fn could(
        &self,
        index: usize,
        object: Address,
        types: &'static [&'static str],
        signals: &'static [&'static str],
    ) -> bool {
        let Some(thread) = self.finder.thread(index) else { return false };
        let methods = thread.frames.iter().enumerate().filter(|(_, frame)| is_of_program(frame));
        let methods = methods.filter_map(|(at, frame)| Some((at, frame.method.as_deref()?)));
        methods
            .filter(|(_, method)| self.calls_any(method, types, signals))
            .any(|(at, method)| self.reaches(method, &self.objects_of(index, at), object))
    }

    /// Returns true if a method with these objects has another in reach: it is one of them, in a field that
    /// the method reads of one of them, in an array among them, or in a static field that it reads.
    fn reaches(&self, method: &Method, objects: &[Address], object: Address) -> bool {
        if objects.contains(&object) {
            return true;
        }
        let heap = self.finder.dump.heap();
        let fields = self.fields_read(method);
        let refers = |from: &Address| {
            heap.references_of(*from, MAX_REFERENCES).contains(&object)
                && self.read_of(*from, &fields).contains(&object)
        };
        self.statics_of(&fields).any(|of| of == object) || objects.iter().any(refers)
    }

    /// The objects that a method with these objects has in reach.
    pub(super) fn reached(&self, method: &Method, objects: &[Address]) -> BTreeSet<Address> {
        let fields = self.fields_read(method);
        let read = objects.iter().flat_map(|from| self.read_of(*from, &fields));
        objects.iter().copied().chain(read).chain(self.statics_of(&fields)).collect()
    }

    /// The objects in the fields of an object that are read, or in an array.
    fn read_of(&self, object: Address, fields: &FieldsRead) -> Vec<Address> {
        let heap = self.finder.dump.heap();
        if heap.type_name(object).is_some_and(|name| name.ends_with("[]")) {
            return heap.references_of(object, MAX_REFERENCES);
        }
        fields.names.iter().filter_map(|name| heap.reference_field(object, name)).collect()
    }

    fn statics_of(&self, fields: &FieldsRead) -> impl Iterator<Item = Address> {
        let heap = self.finder.dump.heap();
        fields.statics.iter().filter_map(move |at| Some(heap.reference_at(*at)?.0))
    }

    fn fields_read(&self, method: &Method) -> Arc<FieldsRead> {
        let read = || Arc::new(self.finder.dump.types().fields_read(method));
        let Some(key) = key(method) else { return read() };
        if let Some(fields) = self.known.borrow().fields.get(&key) {
            return Arc::clone(fields);
        }
        let fields = read();
        self.known.borrow_mut().fields.insert(key, Arc::clone(&fields));
        fields
    }

    fn calls_any(
        &self,
        method: &Method,
        types: &'static [&'static str],
        signals: &'static [&'static str],
    ) -> bool {
        let (Some(of), Some(name), Some(method_key)) = (types.first(), signals.first(), key(method)) else {
            return false;
        };
        let key = (method_key, *of, *name);
        if let Some(calls) = self.known.borrow().calls.get(&key) {
            return *calls;
        }
        let calls = self.finder.dump.types().calls_any(method, types, signals);
        self.known.borrow_mut().calls.insert(key, calls);
        calls
    }

    /// The objects on the stack of a method and of those that it calls, which save its registers.
    fn objects_of(&self, index: usize, frame: usize) -> Arc<Vec<Address>> {
        if let Some(objects) = self.known.borrow().objects.get(&(index, frame)) {
            return Arc::clone(objects);
        }
        let range = || {
            let thread = self.finder.thread(index)?;
            let frames = &thread.stack.frames;
            let caller = frames.get(frame.saturating_add(1)).map(|caller| caller.sp);
            let end = || frames.get(frame).map(|of| of.sp.saturating_add(OUTERMOST_FRAME));
            Some((thread.stack_start()?, caller.or_else(end)?))
        };
        let mut objects = range()
            .map(|(start, end)| self.finder.dump.heap().objects_between(start, end))
            .unwrap_or_default();
        objects.truncate(MAX_STACK_OBJECTS);
        let objects = Arc::new(objects);
        self.known.borrow_mut().objects.insert((index, frame), Arc::clone(&objects));
        objects
    }
}

impl crate::heap::Heap<'_> {
    /// Returns the state of an object that threads wait for, in numbers with a word each: the count of a
    /// semaphore, the participants of a barrier. Empty for other objects.
    pub fn wait_state(self, object: Address) -> Vec<(&'static str, u64)> {
        let of = self.type_name(object).and_then(|name| Primitive::of_type(&name));
        let number = |(field, lowest, bits, word): &(&str, u32, u32, &'static str)| {
            let value = match self.field_value(object, field)? {
                Value::Signed(number) => number.cast_unsigned(),
                Value::Unsigned(number) => number,
                _ => return None,
            };
            let mask = u64::MAX.checked_shr(64_u32.saturating_sub(*bits)).unwrap_or_default();
            let value = value.checked_shr(*lowest).unwrap_or_default() & mask;
            // A semaphore without a maximum has that of its type.
            (value != u64::from(i32::MAX.cast_unsigned())).then_some((*word, value))
        };
        let mut state: Vec<_> = of.map_or(&[][..], |of| of.state).iter().filter_map(number).collect();
        if of.is_some_and(|of| of.kind == WaitedFor::Semaphore)
            && let Some(semaphore) = self.semaphore(object).filter(|semaphore| !semaphore.tasks.is_empty())
        {
            state.push(("awaiting", u64::try_from(semaphore.tasks.len()).unwrap_or(u64::MAX)));
        }
        state
    }
}
