//! Calls of `async` methods that await.

use std::collections::BTreeMap;

use clr_dump::{
    Address, AwaitChains, AwaitKind, AwaitNode, AwaitedOperation, Delay, Dump, Module, Semaphore, TypeHandle,
    Value,
};
use clr_events::code::is_user_assembly;
use clr_events::csharp::type_display_name;

use super::{AwaitFacts, AwaitedFor, ElapsedDelays, FrameworkAwaits, RELEASE, SEMAPHORE, SemaphoreFacts};
use crate::names::{short_name, short_names};

/// The method of a state machine.
const MOVE_NEXT: &str = "MoveNext";
const TASK: &str = "System.Threading.Tasks.Task";
const TASK_WITH_RESULT: &str = "System.Threading.Tasks.Task`1[";
const SEMAPHORE_TASK: &str = "System.Threading.SemaphoreSlim+TaskNode";
/// Maximum number of callers of a method that are named.
const MAX_CALLERS: usize = 4;

/// The awaits of a process.
#[derive(Default)]
pub(super) struct FoundAwaits {
    pub(super) awaits: Vec<AwaitFacts>,
    pub(super) framework: Vec<FrameworkAwaits>,
    pub(super) elapsed_delays: ElapsedDelays,
}

/// Returns the calls of `async` methods of the user's code that await.
pub(super) fn awaits(dump: &Dump<'_>, chains: &AwaitChains) -> FoundAwaits {
    let reader = Reader { dump, chains, semaphores: semaphores(dump, chains) };
    let mut groups: BTreeMap<(MethodKey, TypeHandle, Address), AwaitFacts> = BTreeMap::new();
    let mut elapsed = ElapsedDelays::default();
    for of in &chains.operations {
        let Some(method) = method_key(&of.method) else { continue };
        if matches!(of.operation.kind, AwaitKind::Task { delay: Some(Delay::Elapsed), .. }) {
            elapsed.method = elapsed.method.or_else(|| user_method(dump, &of.method));
            elapsed.calls = elapsed.calls.saturating_add(u64::from(elapsed.method.is_some()));
        }
        let semaphore = reader.semaphore(of.operation.address);
        let object = semaphore.map_or_else(Address::default, |semaphore| semaphore.address);
        let key = (method, of.operation.type_handle, object);
        match groups.get_mut(&key) {
            Some(facts) => facts.calls.push(of.method.address),
            None => {
                if let Some(facts) = reader.facts(of, semaphore) {
                    groups.insert(key, facts);
                }
            }
        }
    }
    FoundAwaits {
        framework: reader.framework(),
        awaits: groups.into_values().collect(),
        elapsed_delays: elapsed,
    }
}

/// An `await` in a method: a state machine with its state, or an address in the method's code.
type MethodKey = (TypeHandle, Option<i32>, Address);

/// Returns the key of a call's `await`; `None` if its method is unknown.
fn method_key(method: &AwaitNode) -> Option<MethodKey> {
    match method.kind {
        AwaitKind::Method { state_machine, state } => Some((state_machine?, state, Address::default())),
        AwaitKind::SuspendedCall { at } => Some((TypeHandle::default(), None, at)),
        _ => None,
    }
}

/// The semaphores that tasks wait for, which are searched for only if there are such tasks.
fn semaphores(dump: &Dump<'_>, chains: &AwaitChains) -> Vec<Semaphore> {
    let is_of_semaphore = |of: &AwaitedOperation| {
        dump.types().name(of.operation.type_handle).as_deref() == Some(SEMAPHORE_TASK)
    };
    if !chains.operations.iter().any(is_of_semaphore) {
        return Vec::new();
    }
    dump.heap().awaited_semaphores().unwrap_or_default()
}

struct Reader<'d, 'm> {
    dump: &'d Dump<'m>,
    chains: &'d AwaitChains,
    semaphores: Vec<Semaphore>,
}

impl Reader<'_, '_> {
    fn semaphore(&self, task: Address) -> Option<&Semaphore> {
        self.semaphores.iter().find(|semaphore| semaphore.tasks.contains(&task))
    }

    /// The facts with the first call; `None` for methods of the framework.
    fn facts(&self, of: &AwaitedOperation, semaphore: Option<&Semaphore>) -> Option<AwaitFacts> {
        let awaited_type = self.dump.types().name(of.operation.type_handle)?;
        Some(AwaitFacts {
            method: user_method(self.dump, &of.method)?,
            state: match of.method.kind {
                AwaitKind::Method { state, .. } => state,
                _ => None,
            },
            awaited: awaited(&of.operation, &awaited_type),
            type_name: type_display_name(&awaited_type),
            semaphore: semaphore.map(|semaphore| SemaphoreFacts::of(semaphore, self.releases(&of.method))),
            calls: vec![of.method.address],
            callers: self.callers(&of.method),
        })
    }

    /// The calls of methods of the user's code that await a method of the framework, which awaits an
    /// operation.
    fn framework(&self) -> Vec<FrameworkAwaits> {
        let mut calls: BTreeMap<(String, String), u64> = BTreeMap::new();
        for group in &self.chains.groups {
            let Some([_, first, callers @ ..]) = group.nodes.get(..) else { continue };
            if user_method(self.dump, first).is_some() {
                continue;
            }
            let user =
                callers.iter().enumerate().find_map(|(at, node)| Some((at, user_method(self.dump, node)?)));
            let Some((at, user)) = user else { continue };
            let awaited = at.checked_sub(1).and_then(|at| callers.get(at)).unwrap_or(first);
            let sum = calls.entry((user, self.framework_method(awaited))).or_default();
            *sum = sum.saturating_add(group.count);
        }
        let mut calls: Vec<_> = calls
            .into_iter()
            .map(|((method, awaited), calls)| FrameworkAwaits { method, awaited, calls })
            .collect();
        calls.sort_by_key(|of| std::cmp::Reverse(of.calls));
        calls
    }

    /// The method of the framework, or the type of what has none.
    fn framework_method(&self, node: &AwaitNode) -> String {
        let name = self.dump.types().name(node.type_handle);
        match node.kind {
            AwaitKind::Method { state_machine: Some(of), .. } => {
                self.dump.types().name(of).map(|name| short_name(&name, MOVE_NEXT, ""))
            }
            AwaitKind::SuspendedCall { .. } => {
                let method = self.dump.awaits().suspended_method(node).and_then(|method| method.name);
                method.map(|name| short_name(&name.type_name, &name.name, ""))
            }
            _ => name.map(|name| short_names(&type_display_name(&name))),
        }
        .unwrap_or_else(|| "the framework".to_owned())
    }

    /// Returns true if a method releases a semaphore.
    fn releases(&self, method: &AwaitNode) -> bool {
        let types = self.dump.types();
        if let AwaitKind::Method { state_machine: Some(of), .. } = method.kind {
            return types.method_of_type_calls(of, MOVE_NEXT, SEMAPHORE, RELEASE);
        }
        let method = self.dump.awaits().suspended_method(method);
        method.is_some_and(|method| types.calls(&method, SEMAPHORE, RELEASE))
    }

    /// The methods of the user's code that await a method, the nearest first, in the most frequent chain.
    fn callers(&self, method: &AwaitNode) -> Vec<String> {
        let is_method = |node: &&AwaitNode| method_key(node) == method_key(method);
        let group =
            self.chains.groups.iter().find(|group| group.nodes.get(1).as_ref().is_some_and(is_method));
        let callers = group.map_or(&[][..], |group| group.nodes.get(2..).unwrap_or_default());
        callers.iter().filter_map(|node| user_method(self.dump, node)).take(MAX_CALLERS).collect()
    }
}

/// Returns the `async` method of a call, if it is of the user's code.
pub(super) fn user_method(dump: &Dump<'_>, call: &AwaitNode) -> Option<String> {
    let types = dump.types();
    let is_user = |module: &Module| is_user_assembly(module.file_name(), &module.path);
    if let AwaitKind::Method { state_machine: Some(of), .. } = call.kind {
        is_user(&*types.module(of)?).then_some(())?;
        return Some(short_name(&types.name(of)?, MOVE_NEXT, ""));
    }
    let method = dump.awaits().suspended_method(call)?;
    is_user(method.module.as_ref()?).then_some(())?;
    let name = method.name?;
    Some(short_name(&name.type_name, &name.name, ""))
}

fn awaited(operation: &AwaitNode, type_name: &str) -> AwaitedFor {
    let has_no_code =
        matches!(operation.kind, AwaitKind::Task { action: None, is_running: false, delay: None });
    match type_name {
        SEMAPHORE_TASK => AwaitedFor::Semaphore,
        _ if has_no_code && is_plain_task(type_name) => AwaitedFor::Promise,
        _ => AwaitedFor::Other,
    }
}

/// Returns true for a task that no code of its own ends: that of a `TaskCompletionSource`.
pub(super) fn is_promise(dump: &Dump<'_>, task: Address) -> bool {
    let is_plain = dump.heap().type_name(task).is_some_and(|name| is_plain_task(&name));
    is_plain && dump.heap().field_value(task, "m_action") == Some(Value::Null)
}

/// Returns true for a task of no class of its own, as those of delays, `async` methods and `Task.WhenAll`
/// have.
fn is_plain_task(type_name: &str) -> bool {
    type_name == TASK || type_name.starts_with(TASK_WITH_RESULT)
}
