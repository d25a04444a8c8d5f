//! Findings as data.

use serde::Serialize;

/// Declares the kinds with their names for programs, a line each.
macro_rules! finding_kinds {
    ($($kind:ident = $id:literal: $doc:literal,)*) => {
        /// A kind of cause.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingKind {
            $(#[doc = $doc] $kind,)*
        }

        impl FindingKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The name, for programs: `lock-convoy`.
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$kind => $id,)*
                }
            }
        }
    };
}

finding_kinds! {
    Death = "death": "The process has ended of itself.",
    Deadlock = "deadlock": "Threads wait for each other.",
    LockConvoy = "lock-convoy": "Threads wait for a lock that another thread holds.",
    StuckWait = "stuck-wait": "Threads or `async` methods wait for what no code gives them.",
    Finalizer = "finalizer": "The finalizer thread is blocked or slow.",
    StaticConstructor = "static-constructor": "A static constructor waits.",
    Starvation = "starvation": "The workers of the thread pool are blocked.",
    Regex = "regex": "A regular expression takes most of the processor time.",
    HotMethod = "hot-method": "A method takes most of the processor time.",
    JitStorm = "jit-storm": "The JIT compiler takes much of the processor time.",
    NotPrecompiled = "not-precompiled": "The precompiled code of .NET is not used.",
    Profiler = "profiler": "A profiler or an agent in the process takes much of the processor time.",
    InducedCollections = "induced-collections": "The program asks for collections.",
    GcPressure = "gc-pressure": "Collections take much of the time.",
    Exceptions = "exceptions": "Exceptions are thrown all the time.",
    FailedRequests = "failed-requests": "Requests fail.",
    SlowCalls = "slow-calls": "Calls to something outside the program take long.",
    SlowRequests = "slow-requests": "Requests take long.",
    SlowOutput = "slow-output": "The reader of the program's output is slow.",
    Throttled = "throttled": "The control group's quota of processors is used up.",
    BusyNeighbour = "busy-neighbour": "Other processes use the processors.",
    PageFaults = "page-faults": "Pages are read from swap space or from files on disk.",
    MemoryLimit = "memory-limit": "The memory limit of the control group is reached.",
    ThreadGrowth = "thread-growth": "The number of threads grows.",
    DescriptorGrowth = "descriptor-growth": "The number of open files or sockets grows, or is near the limit.",
    MemoryGrowth = "memory-growth": "The managed heap grows, also after collections.",
    NativeGrowth = "native-growth": "Native memory grows, and the managed heap does not.",
    CollectionGrowth = "collection-growth": "A collection that a static field or a stack leads to grows.",
    HandleGrowth = "handle-growth": "The number of handles that hold objects grows.",
    TimerGrowth = "timer-growth": "The number of timers grows.",
    ContextGrowth = "context-growth": "The number of load contexts of assemblies grows.",
    DynamicMethodGrowth = "dynamic-method-growth": "Methods are made at run time all the time, and not unloaded.",
    HeapFragmentation = "heap-fragmentation": "Most of a generation of the managed heap is free between objects.",
    NativeFree = "native-free": "Most of the native heap is free, and not given back to the system.",
}

impl FindingKind {
    /// Returns true if this is a usual cause of another kind of finding in the same method, or in any.
    pub(crate) fn causes(self, effect: Self, is_same_method: bool) -> bool {
        (self.stops_work() && effect.is_piled_up())
            || self.in_any_method().contains(&effect)
            || (is_same_method && self.in_same_method().contains(&effect))
    }

    /// The effects in any method.
    const fn in_any_method(self) -> &'static [Self] {
        match self {
            Self::Deadlock => &[
                Self::LockConvoy,
                Self::Starvation,
                Self::FailedRequests,
                Self::SlowRequests,
                Self::ThreadGrowth,
            ],
            Self::Starvation => &[Self::FailedRequests, Self::SlowRequests, Self::ThreadGrowth],
            Self::Finalizer => &[Self::NativeGrowth, Self::HandleGrowth],
            Self::LockConvoy => &[Self::FailedRequests],
            Self::Throttled => &[Self::BusyNeighbour, Self::SlowRequests],
            Self::BusyNeighbour => &[Self::SlowRequests],
            Self::InducedCollections => &[Self::GcPressure, Self::HeapFragmentation],
            // The collector gives regions of large objects back, and takes others.
            Self::GcPressure => &[Self::NativeGrowth, Self::HeapFragmentation],
            Self::Regex => &[Self::HotMethod],
            Self::NotPrecompiled => &[Self::JitStorm],
            Self::TimerGrowth => &[Self::CollectionGrowth, Self::MemoryGrowth],
            Self::HandleGrowth => &[Self::CollectionGrowth, Self::MemoryGrowth, Self::HeapFragmentation],
            Self::ContextGrowth => &[
                Self::DynamicMethodGrowth,
                Self::CollectionGrowth,
                Self::HandleGrowth,
                Self::NativeGrowth,
                Self::MemoryGrowth,
            ],
            Self::DynamicMethodGrowth => {
                &[Self::CollectionGrowth, Self::HandleGrowth, Self::NativeGrowth, Self::MemoryGrowth]
            }
            Self::ThreadGrowth => &[Self::CollectionGrowth, Self::HandleGrowth, Self::NativeGrowth],
            Self::NativeGrowth | Self::DescriptorGrowth => &[Self::CollectionGrowth],
            Self::CollectionGrowth => &[Self::MemoryGrowth],
            Self::HeapFragmentation | Self::NativeFree => &[Self::MemoryLimit],
            _ => &[],
        }
    }

    /// Returns true if work stands still: what waits for it piles up.
    const fn stops_work(self) -> bool {
        matches!(self, Self::Deadlock | Self::StuckWait | Self::Starvation | Self::Finalizer)
    }

    /// Returns true for growth of what waits.
    const fn is_piled_up(self) -> bool {
        matches!(self, Self::CollectionGrowth | Self::TimerGrowth | Self::MemoryGrowth)
    }

    /// The effects in the same method, besides those in any.
    const fn in_same_method(self) -> &'static [Self] {
        match self {
            Self::StuckWait => &[Self::Starvation, Self::ThreadGrowth, Self::LockConvoy],
            Self::LockConvoy => &[Self::Starvation],
            Self::SlowOutput => &[Self::LockConvoy, Self::Starvation],
            Self::StaticConstructor | Self::Finalizer => &[Self::LockConvoy],
            Self::FailedRequests | Self::SlowCalls => &[Self::Exceptions, Self::StuckWait],
            Self::JitStorm => &[Self::HotMethod, Self::DynamicMethodGrowth],
            Self::InducedCollections | Self::Exceptions => &[Self::HotMethod],
            _ => &[],
        }
    }
}

impl Serialize for FindingKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// The certainty of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::exhaustive_enums, reason = "it is certain or not")]
pub enum Confidence {
    /// It follows from the evidence, but other causes are possible.
    Likely,
    /// It was observed.
    Certain,
}

/// A number of the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Number {
    /// The name with its unit: `blocked_ns`, `workers`, `percent`.
    pub name: &'static str,
    /// The value.
    pub value: f64,
}

impl Number {
    pub(crate) const fn new(name: &'static str, value: f64) -> Self {
        Self { name, value }
    }
}

/// The place that shows more of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Details {
    /// Locks, and the threads that hold them and wait for them.
    Locks,
    /// The stacks of all threads.
    Stacks,
    /// Chains of `async` methods.
    Awaits,
    /// Methods by time.
    Methods,
    /// Exceptions with their stacks.
    Exceptions,
    /// Collections.
    Collections,
    /// Allocated types and methods.
    Allocations,
    /// Waits for locks over time.
    Contention,
    /// The thread pool over time.
    ThreadPool,
    /// Compiled methods.
    Jit,
    /// Requests.
    Requests,
    /// Objects of the managed heap by type.
    Heap,
    /// The process and its machine, as the kernel counts them.
    Machine,
}

/// A cause that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
    /// The certainty.
    pub confidence: Confidence,
    /// The number of threads, or of processors, that it takes from the program.
    pub cost: f64,
    /// The cause as a sentence, with the user's method. Control characters of names are escaped.
    pub cause: String,
    /// The nearest method of the user's code, without parameters.
    pub method: Option<String>,
    /// The methods of the user's code in which threads wait for a lock.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting_methods: Vec<String>,
    /// The object: the type of a lock, an exception, a route.
    pub object: Option<String>,
    /// Further evidence, a sentence each.
    pub evidence: Vec<String>,
    /// The numbers of the sentences.
    pub numbers: Vec<Number>,
    /// The place that shows more.
    pub details: Details,
}

impl Finding {
    pub(crate) const fn new(kind: FindingKind, cost: f64, cause: String, details: Details) -> Self {
        Self {
            kind,
            confidence: Confidence::Certain,
            cost,
            cause,
            method: None,
            waiting_methods: Vec::new(),
            object: None,
            evidence: Vec::new(),
            numbers: Vec::new(),
            details,
        }
    }

    /// Returns true if it says that something grows, which it does at the start of a program, too.
    pub(crate) fn is_of_growth(&self) -> bool {
        use FindingKind::{
            CollectionGrowth, DescriptorGrowth, HandleGrowth, MemoryGrowth, NativeGrowth, ThreadGrowth,
            TimerGrowth,
        };
        match self.kind {
            // They can be near their limit.
            DescriptorGrowth => {
                self.numbers.iter().any(|number| number.name == "growth" && number.value > 0.0)
            }
            CollectionGrowth | HandleGrowth | MemoryGrowth | NativeGrowth | ThreadGrowth | TimerGrowth => {
                true
            }
            _ => false,
        }
    }

    pub(crate) fn with_method(self, method: Option<String>) -> Self {
        Self { method, ..self }
    }

    pub(crate) fn with_waiting_methods(self, methods: Vec<String>) -> Self {
        Self { waiting_methods: methods, ..self }
    }

    pub(crate) fn with_object(self, object: Option<String>) -> Self {
        Self { object, ..self }
    }

    pub(crate) fn with_numbers(self, numbers: impl Into<Vec<Number>>) -> Self {
        Self { numbers: numbers.into(), ..self }
    }

    pub(crate) fn with_evidence(self, evidence: impl IntoIterator<Item = String>) -> Self {
        Self { evidence: evidence.into_iter().collect(), ..self }
    }

    pub(crate) fn and_evidence(mut self, evidence: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    pub(crate) fn with_confidence(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }
}

/// The place of a cause, at the end of its sentence.
pub(crate) fn in_method(method: Option<&str>) -> String {
    method.map_or_else(String::new, |method| format!(" in {method}"))
}

/// The sentence about a static constructor that waits: in a method, with more about the wait.
pub(crate) fn waiting_constructor(type_name: &str, wait: &str) -> String {
    format!("The static constructor of {type_name} waits in {wait}: the code that uses it waits, too")
}
