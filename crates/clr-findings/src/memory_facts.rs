//! What memory says about the threads of a process, as data of its own.

use clr_dump::{
    Address, CoreFile, Death, Dump, ThreadSnapshot, ThreadStacks, ThreadWait, ThreadWaits, WaitedFor,
};
use clr_events::code::is_framework;
use clr_events::csharp::{Detail, RuntimeName, type_name};
use clr_events::escape_controls;
use nettrace_export::method_name;

/// The wait of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitFacts {
    /// The kind of object.
    pub kind: WaitedFor,
    /// The address of the object. Collections move objects.
    pub object: Address,
    /// The object's type in C#, if the memory has it.
    pub type_name: Option<String>,
    /// The indexes of the threads that have to act.
    pub owners: Vec<usize>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadFacts {
    /// Thread id in the system; zero if it has not started or has ended.
    pub tid: u64,
    /// The name that the program gave it.
    pub name: Option<String>,
    /// True for a worker of the thread pool.
    pub is_pool_worker: bool,
    /// The innermost method of the user's code, without parameters.
    pub method: Option<String>,
    /// The framework's method that it called.
    pub called: Option<String>,
    /// The wait for other threads.
    pub wait: Option<WaitFacts>,
    /// The exception that it throws or handles, with its message.
    pub exception: Option<(String, Option<String>)>,
}

/// The threads of a process at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryFacts {
    /// The threads.
    pub threads: Vec<ThreadFacts>,
    /// Threads that wait for each other: the indexes of each cycle.
    pub deadlocks: Vec<Vec<usize>>,
    /// The end of the process, of a core dump.
    pub death: Option<Death>,
}

impl MemoryFacts {
    /// Reads the threads of a core dump.
    pub fn of_core(core: &CoreFile, dump: &Dump<'_>, stacks: ThreadStacks) -> Self {
        let threads = snapshots(dump, stacks);
        Self::of_snapshots(Some(core), dump, &threads.iter().collect::<Vec<_>>())
    }

    /// Takes threads that were read already, with the core dump if they are of one.
    pub fn of_snapshots(core: Option<&CoreFile>, dump: &Dump<'_>, threads: &[&ThreadSnapshot]) -> Self {
        let death = core.and_then(|core| Death::find(core, dump, threads));
        Self { death, ..Self::of_threads(dump, threads) }
    }

    /// Reads the threads of a process.
    pub fn of_process(dump: &Dump<'_>, stacks: ThreadStacks) -> Self {
        let threads = snapshots(dump, stacks);
        Self::of_threads(dump, &threads.iter().collect::<Vec<_>>())
    }

    fn of_threads(dump: &Dump<'_>, threads: &[&ThreadSnapshot]) -> Self {
        let waits = ThreadWaits::find(dump, threads, &dump.locks().monitors());
        let facts = threads.iter().enumerate().map(|(index, thread)| facts(dump, thread, waits.of(index)));
        let cycle =
            |cycle: Vec<(usize, &ThreadWait, usize)>| cycle.into_iter().map(|(thread, ..)| thread).collect();
        Self {
            threads: facts.collect(),
            deadlocks: waits.deadlocks().into_iter().map(cycle).collect(),
            death: None,
        }
    }

    /// The thread with an index.
    pub(crate) fn thread(&self, index: usize) -> Option<&ThreadFacts> {
        self.threads.get(index)
    }
}

impl ThreadFacts {
    /// The thread in a sentence: its name, or its number.
    pub(crate) fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{} ({})", escape_controls(name), self.tid),
            None => format!("thread {}", self.tid),
        }
    }
}

fn snapshots(dump: &Dump<'_>, stacks: ThreadStacks) -> Vec<ThreadSnapshot> {
    let threads = dump.threads();
    let snapshot = |of: clr_dump::ManagedStack| threads.snapshot(of.thread, of.stack, of.registers.as_ref());
    stacks.managed.into_iter().map(snapshot).collect()
}

fn facts(dump: &Dump<'_>, thread: &ThreadSnapshot, wait: Option<&ThreadWait>) -> ThreadFacts {
    let mut called = None;
    let mut method = None;
    for frame in &thread.frames {
        let Some(named) = frame.method.as_deref() else { continue };
        if named.module.as_deref().is_some_and(|module| {
            let name = module.file_name();
            let name = name.strip_suffix(".dll").unwrap_or(name);
            !name.is_empty() && !is_framework(name, &module.path)
        }) {
            method = method_in_words(named);
            break;
        }
        called = method_in_words(named).or(called);
    }
    let exception = thread.exceptions.exceptions.iter().find_map(|(_, chain)| chain.first());
    ThreadFacts {
        tid: thread.thread.os_id,
        name: thread.name.clone().filter(|name| !name.is_empty()),
        is_pool_worker: thread.thread.state.is_pool_worker(),
        method,
        called,
        wait: wait.map(|wait| WaitFacts {
            kind: wait.kind,
            object: wait.object,
            type_name: dump.heap().type_name(wait.object).map(|name| csharp(&name)),
            owners: wait.owners.clone(),
        }),
        exception: exception.map(|exception| {
            let name = exception.type_name.as_deref().map_or_else(|| "an exception".to_owned(), csharp);
            (name, exception.message.clone())
        }),
    }
}

fn csharp(runtime_name: &str) -> String {
    type_name(runtime_name).unwrap_or_else(|| runtime_name.to_owned())
}

/// The short C# name of a method, without parameters.
fn method_in_words(method: &clr_dump::Method) -> Option<String> {
    let name = method.name.as_ref()?;
    let of_runtime = RuntimeName { namespace: &name.type_name, name: &name.name, signature: &name.signature };
    let text = match of_runtime.csharp(Detail::Short) {
        Some(csharp) => csharp.text.get(csharp.namespace_len..).unwrap_or(&csharp.text).to_owned(),
        None => [&*name.type_name, ".", &*name.name].concat(),
    };
    Some(escape_controls(method_name::csharp_without_parameters(&text)).into_owned())
}
