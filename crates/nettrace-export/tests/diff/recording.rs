//! Recordings of a simulated service: one worker that runs methods, requests of two routes, allocations.

use nettrace::SliceReader;
use nettrace_export::diff::{Run, RunBuilder, RunOptions};
use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, payload, stack_bytes};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
const PROCESS: i32 = 4711;

const SAMPLE: u32 = 1;
const METHOD: u32 = 2;
const MODULE: u32 = 3;
const ALLOCATION: u32 = 4;
const START: u32 = 5;
const STOP: u32 = 6;

/// Methods that the worker runs, each below `Handle`, with the share of jobs and the mean length of a job in
/// milliseconds.
const JOBS: [(&str, f64, f64); 6] = [
    ("Price", 0.25, 20.0),
    ("Load", 0.25, 20.0),
    ("Render", 0.2, 12.0),
    ("Parse", 0.15, 8.0),
    ("Log", 0.1, 8.0),
    ("Audit", 0.05, 4.0),
];
const HANDLE: u64 = 6;
const WAIT: u64 = 7;
const WORKER: u64 = 8;
const ROUTES: [(&str, f64); 2] = [("/orders", 4.0), ("/price", 2.0)];
const TYPES: [&str; 3] = ["System.String", "System.Byte[]", "Shop.Order"];
const MANAGED: u32 = 2;
const EXTERNAL: u32 = 1;

/// A program that is simulated.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    /// The milliseconds from one sample to the next.
    pub(crate) period: u64,
    /// The factor of everything in this run: machines are never the same.
    pub(crate) speed: f64,
    /// The factor of the method `Price`, of requests to `/price`, and of `Shop.Order`.
    pub(crate) price: f64,
    pub(crate) price_requests: f64,
    pub(crate) orders_allocated: f64,
}

/// Random numbers: xorshift64*, a different generator than the code under test uses.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// From 0 to 1, without 0.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        (bits as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.uniform().ln()
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

impl Program {
    pub(crate) fn new(seed: u64, seconds: u64) -> Self {
        Self { seed, seconds, period: 5, speed: 1.0, price: 1.0, price_requests: 1.0, orders_allocated: 1.0 }
    }

    /// Everything that is about prices is a tenth slower.
    pub(crate) fn slower(self) -> Self {
        Self { price: 1.1, price_requests: 1.1, ..self }
    }

    /// A run with a speed of its own, as far from others as 1 %.
    pub(crate) fn of_run(self) -> Self {
        let mut random = Random(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..10 {
            random.uniform();
        }
        Self { speed: 1.0 + 0.01 * random.normal(), ..self }
    }

    pub(crate) fn run(self) -> Run {
        let bytes = self.recording();
        let recording = SliceReader::new(&bytes).unwrap();
        let mut builder = RunBuilder::new(RunOptions::default(), recording.info());
        let mut events = recording.in_time_order();
        events.for_each(|event| builder.add(&event)).unwrap();
        let info = events.info().cloned();
        builder.finish(info.as_ref())
    }

    pub(crate) fn recording(self) -> Vec<u8> {
        let mut events = names();
        let mut random = Random(self.seed.wrapping_mul(0xd134_2543_de82_ef95) | 1);
        self.samples(&mut random, &mut events);
        for (index, (path, mean)) in (0..).zip(ROUTES) {
            let factor = if path == "/price" { self.price_requests } else { 1.0 };
            self.requests(&mut random, (index, path, mean * factor * self.speed), &mut events);
        }
        self.allocations(&mut random, &mut events);
        events.sort_by_key(|event| event.timestamp);
        trace(&events)
    }

    /// The worker's jobs; half of the time it waits for the next one.
    fn samples(self, random: &mut Random, events: &mut Vec<Event>) {
        let end = (self.seconds * 1000) as f64;
        let mut at = 0.0;
        let mut next = 0;
        let mut period = |stack: usize, kind: u32, until: f64, events: &mut Vec<Event>| {
            while (next as f64) < until.min(end) {
                let stack = u32::try_from(stack).unwrap() + 1;
                events.push(event(SAMPLE, 7, next * 1_000_000, stack, payload(&[Value::UInt32(kind)])));
                next += self.period;
            }
        };
        let mut arrival = 0.0;
        while at < end {
            // Jobs arrive independently of how long earlier ones take: the load stays the same.
            arrival += random.exponential(28.0);
            at = f64::max(at, arrival);
            period(JOBS.len(), EXTERNAL, at, events);
            let mut choice = random.uniform();
            let job = JOBS.iter().position(|(_, share, _)| {
                choice -= share;
                choice < 0.0
            });
            let job = job.unwrap_or(0);
            let factor = if JOBS[job].0 == "Price" { self.price } else { 1.0 };
            let length = random.exponential(JOBS[job].2) * factor * self.speed;
            at += length;
            period(job, MANAGED, at, events);
        }
    }

    /// Requests on a thread of their own, 25 ms apart.
    fn requests(self, random: &mut Random, (index, path, mean): (u64, &str, f64), events: &mut Vec<Event>) {
        let thread = 100 + index;
        for number in 0..self.seconds * 40 {
            let start = number * 25_000_000 + (random.uniform() * 1e6) as u64;
            let factor = (0.4 * random.normal() - 0.08).exp();
            let duration = (mean * factor * 1e6).min(23e6) as u64;
            let activity =
                activity(&[u8::try_from(index).unwrap() + 1, u8::try_from(number % 10).unwrap() + 1]);
            let text = [Value::string16("GET"), Value::string16(path)];
            for (kind, time, fields) in [(START, start, &text[..]), (STOP, start + duration, &[])] {
                events.push(Event { activity, ..event(kind, thread, time, 0, payload(fields)) });
            }
        }
    }

    fn allocations(self, random: &mut Random, events: &mut Vec<Event>) {
        for (name, per_second) in TYPES.iter().zip([40.0, 25.0, 15.0]) {
            let factor = if *name == "Shop.Order" { self.orders_allocated } else { 1.0 };
            let mut at = 0.0;
            loop {
                at += random.exponential(1e9 / (per_second * factor));
                if at >= (self.seconds * 1_000_000_000) as f64 {
                    break;
                }
                let fields = [
                    Value::UInt32(0),
                    Value::UInt32(0),
                    Value::UInt16(0),
                    Value::UInt64(100_000),
                    Value::UInt64(0),
                    Value::string16(name),
                    Value::UInt32(0),
                    Value::UInt64(0),
                    Value::UInt64(24),
                ];
                // `Load` allocates orders, and `Parse` everything else.
                let stack = if *name == "Shop.Order" { 2 } else { 4 };
                events.push(event(ALLOCATION, 7, at as u64, stack, payload(&fields)));
            }
        }
    }
}

fn event(metadata_id: u32, thread: u64, timestamp: u64, stack_id: u32, payload: Vec<u8>) -> Event {
    Event { metadata_id, thread, capture_thread: thread, stack_id, timestamp, payload, ..Event::default() }
}

fn address(method: u64) -> u64 {
    0x1000 * (method + 1)
}

/// The module and the methods.
fn names() -> Vec<Event> {
    let module = |id: u64, path: &str| {
        let values = [
            Value::UInt64(id),
            Value::UInt64(id),
            Value::UInt32(0),
            Value::UInt32(0),
            Value::string16(path),
            Value::string16(""),
            Value::UInt16(0),
        ];
        event(MODULE, 1, 0, 0, payload(&values))
    };
    let mut events = vec![module(1, "/a/shop.dll"), module(2, "/a/System.Private.CoreLib.dll")];
    let jobs = JOBS.iter().map(|(name, ..)| ("Shop.Work", *name));
    let others = [
        ("Shop.Work", "Handle"),
        ("System.Threading.LowLevelLifoSemaphore", "Wait"),
        ("System.Threading.PortableThreadPool+WorkerThread", "WorkerThreadStart"),
    ];
    for (index, (namespace, name)) in (0..).zip(jobs.chain(others)) {
        let values = [
            Value::UInt64(index + 1),
            Value::UInt64(if namespace.starts_with("System.") { 2 } else { 1 }),
            Value::UInt64(address(index)),
            Value::UInt32(0x100),
            Value::UInt32(0x0600_0001),
            Value::UInt32(8),
            Value::string16(namespace),
            Value::string16(name),
            Value::string16("void  ()"),
            Value::UInt16(0),
        ];
        events.push(event(METHOD, 1, 0, 0, payload(&values)));
    }
    events
}

fn trace(events: &[Event]) -> Vec<u8> {
    let header = TraceHeader {
        frequency: 1_000_000_000,
        sync_ticks: 0,
        process_id: PROCESS,
        ..TraceHeader::default()
    };
    let mut trace = Trace::new(&header);
    let kind = |id, provider: &str, event_id, version| Metadata {
        id,
        provider: provider.into(),
        event_id,
        version,
        ..Metadata::default()
    };
    let request = |id, event_id, name: &str, opcode, fields| Metadata {
        name: name.into(),
        opcode: Some(opcode),
        fields,
        ..kind(id, HOSTING, event_id, 0)
    };
    let texts = vec![Field::new("method", Type::String16), Field::new("path", Type::String16)];
    trace.metadata_block(&[
        kind(SAMPLE, "Microsoft-DotNETCore-SampleProfiler", 0, 0),
        kind(METHOD, RUNTIME, 143, 1),
        kind(MODULE, RUNTIME, 152, 1),
        kind(ALLOCATION, RUNTIME, 10, 4),
        request(START, 3, "RequestStart", 1, texts),
        request(STOP, 4, "RequestStop", 2, Vec::new()),
    ]);
    let below = |methods: &[u64]| {
        let addresses: Vec<_> = methods.iter().map(|method| address(*method) + 8).collect();
        stack_bytes(&addresses, 8)
    };
    let mut stacks: Vec<_> = (0..JOBS.len() as u64).map(|job| below(&[job, HANDLE, WORKER])).collect();
    stacks.push(below(&[WAIT, WORKER]));
    trace.stack_block(1, &stacks);
    let mut block = EventBlock::v4();
    for (event, sequence) in events.iter().zip(1..) {
        block.event(&Event { sequence, ..event.clone() });
    }
    trace.event_block(&block);
    trace.finish()
}

/// The id of an activity, of numbers up to 10.
///
/// # Source
/// `ActivityTracker.cs` of dotnet/runtime: the numbers as half bytes, and their sum as words with the process
/// as a check.
fn activity(path: &[u8]) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (index, number) in path.iter().enumerate() {
        bytes[index / 2] |= number << if index % 2 == 0 { 4 } else { 0 };
    }
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let sum = [0, 4, 8].iter().fold(0x599D_99AD_u32, |sum, at| sum.wrapping_add(word(&bytes, *at)));
    bytes[12..].copy_from_slice(&(sum ^ PROCESS.cast_unsigned()).to_le_bytes());
    bytes
}
