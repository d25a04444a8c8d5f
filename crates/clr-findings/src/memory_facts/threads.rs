//! Threads of memory as facts.

use clr_dump::{Dump, Method, ThreadSnapshot, ThreadStacks, ThreadWait};
use clr_events::code::is_user_assembly;
use clr_events::csharp::type_display_name;

use super::{RELEASE, SEMAPHORE, SemaphoreFacts, ThreadFacts, WaitFacts, awaits};
use crate::names::short_name;

/// Maximum number of methods of the user's code of a thread.
const MAX_METHODS: usize = 64;
/// The name of a static constructor.
const STATIC_CONSTRUCTOR: &str = ".cctor";
/// The name of a finalizer.
const FINALIZER: &str = "Finalize";
/// The class with the runtime's own methods that call finalizers.
const COLLECTOR: &str = "System.GC";
/// The class of the thread that watches the pool, and is marked as one of its workers.
const GATE: &str = "System.Threading.PortableThreadPool+GateThread";

pub(super) fn snapshots(dump: &Dump<'_>, stacks: ThreadStacks) -> Vec<ThreadSnapshot> {
    let threads = dump.threads();
    let snapshot = |of: clr_dump::ManagedStack| threads.snapshot(of.thread, of.stack, of.registers.as_ref());
    stacks.managed.into_iter().map(snapshot).collect()
}

pub(super) fn facts(dump: &Dump<'_>, thread: &ThreadSnapshot, wait: Option<&ThreadWait>) -> ThreadFacts {
    let mut facts = ThreadFacts {
        tid: thread.thread.os_id,
        name: thread.name.clone().filter(|name| !name.is_empty()),
        is_pool_worker: thread.thread.state.is_pool_worker() && !is_gate(thread),
        is_waiting: thread.thread.state.is_waiting(),
        wait: wait.map(|wait| wait_facts(dump, wait, Some(thread))),
        exception: exception(thread),
        ..ThreadFacts::default()
    };
    for method in thread.frames.iter().filter_map(|frame| frame.method.as_deref()) {
        let name = method_in_words(method);
        if !is_user_code(method) {
            if facts.methods.is_empty() {
                facts.called = name.or(facts.called);
            }
            continue;
        }
        if is_named(method, STATIC_CONSTRUCTOR) {
            let of = method.name.as_ref().map(|name| type_display_name(&name.type_name));
            facts.initialized_type = facts.initialized_type.or(of);
        }
        facts.methods.extend(name.filter(|_| facts.methods.len() < MAX_METHODS));
    }
    facts.method = facts.methods.first().cloned();
    facts.is_finalizer = is_finalizer(thread);
    facts
}

/// Returns true for the thread that runs finalizers, while it runs one: the runtime's native code calls it,
/// or, in later versions, a method of its collector.
fn is_finalizer(thread: &ThreadSnapshot) -> bool {
    let methods = thread.frames.iter().rev().filter_map(|frame| frame.method.as_deref());
    let is_of_collector =
        |method: &&Method| method.name.as_ref().is_some_and(|name| name.type_name == COLLECTOR);
    let mut methods = methods.skip_while(is_of_collector);
    methods.next().is_some_and(|outermost| is_named(outermost, FINALIZER))
}

/// Returns true for the thread that adds workers to the pool.
fn is_gate(thread: &ThreadSnapshot) -> bool {
    let mut methods = thread.frames.iter().filter_map(|frame| frame.method.as_deref());
    methods.any(|method| method.name.as_ref().is_some_and(|name| name.type_name == GATE))
}

/// The wait of a thread, or of a suspended method that could release it.
pub(super) fn wait_facts(dump: &Dump<'_>, wait: &ThreadWait, thread: Option<&ThreadSnapshot>) -> WaitFacts {
    let methods = thread.into_iter().flat_map(|of| &of.frames).filter_map(|frame| frame.method.as_deref());
    let semaphore = dump.heap().semaphore(wait.object).map(|semaphore| {
        let waiting = methods.clone().find(|method| is_user_code(method));
        let is_guard =
            thread.is_none() || waiting.is_some_and(|method| dump.types().calls(method, SEMAPHORE, RELEASE));
        SemaphoreFacts::of(&semaphore, is_guard)
    });
    WaitFacts {
        kind: wait.kind,
        object: wait.object,
        type_name: dump.heap().type_name(wait.object).map(|name| type_display_name(&name)),
        owners: wait.owners.clone(),
        is_any: wait.is_any(),
        semaphore,
        is_promise: awaits::is_promise(dump, wait.object),
    }
}

/// The innermost exception, with its message.
fn exception(thread: &ThreadSnapshot) -> Option<(String, Option<String>)> {
    let exception = thread.exceptions.exceptions.iter().find_map(|(_, chain)| chain.first())?;
    let name = exception.type_name.as_deref();
    let name = name.map_or_else(|| "an exception".to_owned(), type_display_name);
    Some((name, exception.message.clone()))
}

fn is_user_code(method: &Method) -> bool {
    method.module.as_deref().is_some_and(|module| is_user_assembly(module.file_name(), &module.path))
}

fn is_named(method: &Method, text: &str) -> bool {
    method.name.as_ref().is_some_and(|name| name.name == text)
}

/// The short C# name of a method, without parameters.
pub(crate) fn method_in_words(method: &Method) -> Option<String> {
    let name = method.name.as_ref()?;
    Some(short_name(&name.type_name, &name.name, &name.signature))
}
