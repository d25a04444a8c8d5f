//! Calls of `async` methods that await.

use std::collections::BTreeMap;

use clr_dump::{
    Address, AwaitChains, AwaitKind, AwaitNode, AwaitedOperation, Delay, Dump, Semaphore, TypeHandle, Value,
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
    let mut groups: BTreeMap<(TypeHandle, Option<i32>, TypeHandle, Address), AwaitFacts> = BTreeMap::new();
    let mut elapsed = ElapsedDelays::default();
    for of in &chains.operations {
        let AwaitKind::Method { state_machine: Some(state_machine), state } = of.method.kind else {
            continue;
        };
        if matches!(of.operation.kind, AwaitKind::Task { delay: Some(Delay::Elapsed), .. }) {
            elapsed.method = elapsed.method.or_else(|| reader.user_method(state_machine));
            elapsed.calls = elapsed.calls.saturating_add(u64::from(elapsed.method.is_some()));
        }
        let semaphore = reader.semaphore(of.operation.address);
        let object = semaphore.map_or_else(Address::default, |semaphore| semaphore.address);
        let key = (state_machine, state, of.operation.type_handle, object);
        match groups.get_mut(&key) {
            Some(facts) => facts.calls.push(of.method.address),
            None => {
                if let Some(facts) = reader.facts(of, state_machine, state, semaphore) {
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
    fn facts(
        &self,
        of: &AwaitedOperation,
        state_machine: TypeHandle,
        state: Option<i32>,
        semaphore: Option<&Semaphore>,
    ) -> Option<AwaitFacts> {
        let awaited_type = self.dump.types().name(of.operation.type_handle)?;
        Some(AwaitFacts {
            method: self.user_method(state_machine)?,
            state,
            awaited: awaited(&of.operation, &awaited_type),
            type_name: type_display_name(&awaited_type),
            semaphore: semaphore.map(|semaphore| SemaphoreFacts::of(semaphore, self.releases(state_machine))),
            calls: vec![of.method.address],
            callers: self.callers(state_machine, state),
        })
    }

    /// The calls of methods of the user's code that await a method of the framework, which awaits an
    /// operation.
    fn framework(&self) -> Vec<FrameworkAwaits> {
        let method = |node: &AwaitNode| match node.kind {
            AwaitKind::Method { state_machine: Some(of), .. } => self.user_method(of),
            _ => None,
        };
        let mut calls: BTreeMap<(String, String), u64> = BTreeMap::new();
        for group in &self.chains.groups {
            let Some([_, first, callers @ ..]) = group.nodes.get(..) else { continue };
            if method(first).is_some() {
                continue;
            }
            let user = callers.iter().enumerate().find_map(|(at, node)| Some((at, method(node)?)));
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
            _ => name.map(|name| short_names(&type_display_name(&name))),
        }
        .unwrap_or_else(|| "the framework".to_owned())
    }

    /// Returns true if a method releases a semaphore.
    fn releases(&self, state_machine: TypeHandle) -> bool {
        self.dump.types().method_of_type_calls(state_machine, MOVE_NEXT, SEMAPHORE, RELEASE)
    }

    /// The `async` method of a state machine, if it is of the user's code.
    fn user_method(&self, state_machine: TypeHandle) -> Option<String> {
        let types = self.dump.types();
        let module = types.module(state_machine)?;
        is_user_assembly(module.file_name(), &module.path).then_some(())?;
        Some(short_name(&types.name(state_machine)?, MOVE_NEXT, ""))
    }

    /// The methods of the user's code that await a method, the nearest first, in the most frequent chain.
    fn callers(&self, state_machine: TypeHandle, state: Option<i32>) -> Vec<String> {
        let is_method =
            |node: &&AwaitNode| node.kind == AwaitKind::Method { state_machine: Some(state_machine), state };
        let group =
            self.chains.groups.iter().find(|group| group.nodes.get(1).as_ref().is_some_and(is_method));
        let callers = group.map_or(&[][..], |group| group.nodes.get(2..).unwrap_or_default());
        let method = |node: &AwaitNode| match node.kind {
            AwaitKind::Method { state_machine: Some(of), .. } => self.user_method(of),
            _ => None,
        };
        callers.iter().filter_map(method).take(MAX_CALLERS).collect()
    }
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
