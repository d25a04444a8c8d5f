//! The thresholds of findings: shares of time and of what is possible. The book has them in a table.

use std::time::Duration;

/// Minimum share of the processor time of one method of the user's code, with the framework's that it calls,
/// in percent: a program whose work is spread over its methods has no hot one.
pub const HOT_METHOD: f64 = 40.0;
/// Minimum number of processors that a hot method keeps busy: half of one.
pub const HOT_PROCESSORS: f64 = 0.5;
/// Minimum share of the time that a thread runs, or would with a processor, which never rests, in percent.
pub const TIRELESS: f64 = 80.0;
/// Minimum share of all processors that a program keeps busy which uses them all, in percent.
pub const ALL_PROCESSORS: f64 = 80.0;
/// Minimum share of the JIT compiler in the processor time, in percent. Programs at their start have more.
pub const JIT_SHARE: f64 = 25.0;
/// Minimum number of processors that the JIT compiler keeps busy.
pub const JIT_PROCESSORS: f64 = 0.1;
/// Minimum number of methods that a program which starts compiles per second in the last quarter of the time,
/// without those that are made at run time: what grows meanwhile is not judged.
pub const STARTING_METHODS: f64 = 100.0;
/// Minimum share of the methods that are compiled in the last quarter of the time, in percent: at its start a
/// program compiles what it runs first, once.
pub const JIT_LATE: f64 = 10.0;
/// Minimum share of .NET's own methods in those that are compiled for the first time, in percent, of a
/// program that does not use its precompiled code: others have 10%, of code for the processor at hand.
pub const NOT_PRECOMPILED: f64 = 50.0;
/// Minimum number of such methods.
pub const MIN_NOT_PRECOMPILED: u64 = 200;
/// Minimum share of a profiler in the process in the processor time, in percent: agents aim at less than 5%.
pub const PROFILER_SHARE: f64 = 10.0;
/// Minimum number of processors that it keeps busy.
pub const PROFILER_PROCESSORS: f64 = 0.1;
/// Minimum share of the time for which collections pause the program, in percent: the runtime's own tuning
/// aims at less.
pub const PAUSES: f64 = 10.0;
/// Minimum share of the collector in the processor time, in percent.
pub const GC_SHARE: f64 = 25.0;
/// Minimum number of processors that the collector keeps busy.
pub const GC_PROCESSORS: f64 = 0.1;
/// Minimum share of generation 2 in the collections, in percent, of a program that collects little else: by
/// large objects, or by memory that is almost full.
pub const FULL_COLLECTIONS: f64 = 50.0;
/// Minimum number of such collections per second: a program that renders large texts has one or two, which
/// cost it nothing.
pub const FULL_COLLECTIONS_PER_SECOND: f64 = 5.0;
/// Maximum number of processors on which the collector of a server is mentioned if collections take much of
/// the time: its heaps, one for each, gain little there, and it collects later.
pub const SERVER_PROCESSORS: f64 = 2.0;
/// Minimum number of collections per second that the program asks for.
pub const INDUCED_COLLECTIONS: f64 = 0.5;
/// Minimum number of collections that the program asks for: a single one is no rate.
pub const MIN_INDUCED: u64 = 2;
/// Minimum share of the time for which collections pause a program that asks for them, in percent.
pub const INDUCED_PAUSES: f64 = 1.0;
/// Minimum share of their time that the threads which take a lock wait for it, in percent.
pub const LOCK_SHARE: f64 = 10.0;
/// Minimum number of threads, on average, that wait for a lock.
pub const LOCK_WAITERS: f64 = 0.2;
/// Minimum share of the time in which all workers of the pool are blocked, in percent.
pub const STARVATION: f64 = 10.0;
/// The time without progress after which the thread pool adds a thread: of the runtime, which calls that
/// starvation.
pub const POOL_PATIENCE: Duration = Duration::from_millis(500);
/// Minimum number of exceptions per second: at 20 µs of a processor for each, and more with deep stacks.
pub const EXCEPTIONS: f64 = 50.0;
/// Minimum share of failed requests, in percent.
pub const FAILED_REQUESTS: f64 = 5.0;
/// Minimum number of failed requests.
pub const MIN_FAILED_REQUESTS: u64 = 5;
/// Minimum median of slow calls and requests, in milliseconds: people notice 100 ms, and what they wait for
/// can have more than one call.
pub const SLOW_MILLISECONDS: f64 = 200.0;
/// Minimum number of slow calls or requests that wait, on average.
pub const SLOW_WAITING: f64 = 0.5;
/// Minimum number of slow calls or requests that ended.
pub const MIN_SLOW: u64 = 3;
/// Minimum share of a phase in the time of calls, or of a cause in the time of requests, in percent, which it
/// explains.
pub const SLOW_PART: f64 = 50.0;
/// Minimum number of threads, on average, that wait for the reader of the program's output.
pub const OUTPUT_WAITERS: f64 = 0.2;
/// Minimum number of threads that wait for a lock or a semaphore, in memory.
pub const MIN_WAITERS: usize = 2;
/// Minimum number of calls of an `async` method that await a task which no code ends: idle loops of a service
/// are fewer.
pub const MIN_STUCK_CALLS: usize = 8;
/// Minimum number of objects that wait for a slow finalizer.
pub const MIN_FINALIZABLE: u64 = 100;
/// Minimum number of blocked workers of the pool, in memory.
pub const MIN_BLOCKED_WORKERS: usize = 2;
/// Minimum share of the pool's workers that are blocked, in memory, in percent: of many, some have just begun
/// or ended.
pub const BLOCKED_WORKERS: f64 = 90.0;
/// Maximum share of the time for which a program at rest works, in percent of a processor: it waits for
/// itself.
pub const AT_REST: f64 = 1.0;
/// Minimum share of the time for which threads wait at a barrier or for a countdown, of the time for which
/// threads were recorded, in percent: they poll, and wake up in between.
pub const ENDLESS: f64 = 90.0;
/// Minimum share of the time for which a finalizer or a static constructor waits, in percent.
pub const MOST_OF_THE_TIME: f64 = 50.0;
/// Minimum number of processors on which threads wait, on average, for the next period of a quota.
pub const THROTTLED_PROCESSORS: f64 = 0.1;
/// Minimum share of their runnable time that threads have no processor because of other processes, in
/// percent.
pub const WITHOUT_PROCESSOR: f64 = 25.0;
/// Minimum number of threads, on average, that wait for a processor.
pub const RUN_QUEUE: f64 = 0.5;
/// Minimum number of processors that other processes use which are in the way.
pub const OTHER_PROCESSORS: f64 = 0.5;
/// Minimum share of the processors' time that the host of a virtual machine takes, in percent.
pub const STEAL: f64 = 10.0;
/// Minimum number of page faults per second that wait for a disk: at 0.1 to 10 ms each.
pub const MAJOR_FAULTS: f64 = 50.0;
/// Minimum share of the memory limit of the control group, in percent.
pub const MEMORY_LIMIT: f64 = 95.0;
/// Minimum growth of threads or descriptors per second, in each half of the time.
pub const GROWTH_PER_SECOND: f64 = 1.0;
/// Minimum rate of this growth in each half of the time, in percent of the rate in all: a start has bursts.
pub const EVEN_COUNTS: f64 = 50.0;
/// Minimum growth of threads or descriptors over the time, in percent of their number.
pub const GROWTH: f64 = 5.0;
/// Minimum growth of descriptors over the time: a session, for which the runtime loads assemblies, opens
/// about 10.
pub const SESSION_DESCRIPTORS: u64 = 16;
/// Minimum share of the limit of open files, in percent.
pub const DESCRIPTOR_LIMIT: f64 = 90.0;
/// Minimum growth of memory outside of files over the time, in bytes, in each part of it: a session takes 5
/// to 10 MB.
pub const MEMORY_GROWTH: f64 = 16e6;
/// Minimum rate of growth in each part of the time, in percent of the rate in all: what is filled at a start
/// grows less and less.
pub const EVEN_GROWTH: f64 = 25.0;
/// Maximum time in which a number that grows doubles, in seconds: an hour.
pub const DOUBLING_SECONDS: f64 = 3600.0;
/// Minimum growth of a collection per second, in elements.
pub const COLLECTION_GROWTH: f64 = 10.0;
/// Minimum growth of handles per second.
pub const HANDLE_GROWTH: f64 = 5.0;
/// Minimum growth of timers per second.
pub const TIMER_GROWTH: f64 = 10.0;
/// Minimum share of all allocated bytes of a method that is named for objects which grow, without another
/// sign that it makes them, in percent.
pub const MAIN_ALLOCATOR: f64 = 50.0;
/// Minimum share of a heap that is free and not given back, in percent: most of it.
pub const FREE_SHARE: f64 = 50.0;
/// Minimum share of this free memory in the resident memory of the process, in percent.
pub const FREE_OF_RESIDENT: f64 = 25.0;
/// Minimum number of bytes that are free: as a part of a small process, less is much, and does no harm.
pub const MIN_FREE_BYTES: u64 = 64_000_000;
/// Minimum number of pinned objects that keep a generation from being compacted.
pub const MIN_PINNED: u64 = 100;
/// The cost of growth, in threads: it takes no time yet.
pub const GROWTH_COST: f64 = 0.5;
