//! Recordings of a simulated service: one worker that runs methods, requests of two routes, allocations.

use nettrace::SliceReader;
use nettrace_export::diff::{Run, RunBuilder, RunOptions};
use nettrace_synth::clr::{EXTERNAL, MANAGED, Method, Recording, activity_id};
use nettrace_synth::{Field, Metadata, TraceHeader, Type, Value};

const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
const PROCESS: i32 = 4711;

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
        let mut recording = named();
        let mut random = Random(self.seed.wrapping_mul(0xd134_2543_de82_ef95) | 1);
        self.samples(&mut random, &mut recording);
        for (index, (path, mean)) in (0..).zip(ROUTES) {
            let factor = if path == "/price" { self.price_requests } else { 1.0 };
            self.requests(&mut random, (index, path, mean * factor * self.speed), &mut recording);
        }
        self.allocations(&mut random, &mut recording);
        recording.sort().bytes()
    }

    /// The worker's jobs; half of the time it waits for the next one.
    fn samples(self, random: &mut Random, recording: &mut Recording) {
        let end = (self.seconds * 1000) as f64;
        let mut at = 0.0;
        let mut next = 0;
        let mut period = |stack: usize, mode: u32, until: f64, recording: &mut Recording| {
            while (next as f64) < until.min(end) {
                let stack = u32::try_from(stack).unwrap() + 1;
                recording.thread(7).at(next * 1_000_000).sample(stack, mode);
                next += self.period;
            }
        };
        let mut arrival = 0.0;
        while at < end {
            // Jobs arrive independently of how long earlier ones take: the load stays the same.
            arrival += random.exponential(28.0);
            at = f64::max(at, arrival);
            period(JOBS.len(), EXTERNAL, at, recording);
            let mut choice = random.uniform();
            let job = JOBS.iter().position(|(_, share, _)| {
                choice -= share;
                choice < 0.0
            });
            let job = job.unwrap_or(0);
            let factor = if JOBS[job].0 == "Price" { self.price } else { 1.0 };
            let length = random.exponential(JOBS[job].2) * factor * self.speed;
            at += length;
            period(job, MANAGED, at, recording);
        }
    }

    /// Requests on a thread of their own, 25 ms apart.
    fn requests(
        self,
        random: &mut Random,
        (index, route, mean): (u64, &str, f64),
        recording: &mut Recording,
    ) {
        let thread = 100 + index;
        for number in 0..self.seconds * 40 {
            let start = number * 25_000_000 + (random.uniform() * 1e6) as u64;
            let factor = (0.4 * random.normal() - 0.08).exp();
            let duration = (mean * factor * 1e6).min(23e6) as u64;
            let path = [u8::try_from(index).unwrap() + 1, u8::try_from(number % 10).unwrap() + 1];
            let activity = activity_id(PROCESS, &path);
            let text = [Value::string16("GET"), Value::string16(route)];
            recording.thread(thread).at(start).described(request(true), &text).activity(activity);
            recording.at(start + duration).described(request(false), &[]).activity(activity);
        }
    }

    fn allocations(self, random: &mut Random, recording: &mut Recording) {
        for (name, per_second) in TYPES.iter().zip([40.0, 25.0, 15.0]) {
            let factor = if *name == "Shop.Order" { self.orders_allocated } else { 1.0 };
            let mut at = 0.0;
            loop {
                at += random.exponential(1e9 / (per_second * factor));
                if at >= (self.seconds * 1_000_000_000) as f64 {
                    break;
                }
                // `Load` allocates orders, and `Parse` everything else.
                let stack = if *name == "Shop.Order" { 2 } else { 4 };
                recording.thread(7).at(at as u64).allocation(100_000, name).on(stack);
            }
        }
    }
}

/// The description of the start or the end of a request.
fn request(is_start: bool) -> Metadata {
    let fields = || vec![Field::new("method", Type::String16), Field::new("path", Type::String16)];
    Metadata {
        provider: HOSTING.into(),
        event_id: if is_start { 3 } else { 4 },
        name: if is_start { "RequestStart" } else { "RequestStop" }.into(),
        opcode: Some(if is_start { 1 } else { 2 }),
        fields: if is_start { fields() } else { Vec::new() },
        ..Metadata::default()
    }
}

fn address(method: u64) -> u64 {
    0x1000 * (method + 1)
}

/// A recording with the modules, the methods and the stacks.
fn named() -> Recording {
    let mut recording = Recording::with_header(TraceHeader { process_id: PROCESS, ..TraceHeader::default() });
    recording.module(1, "/a/shop.dll").module(2, "/a/System.Private.CoreLib.dll");
    let jobs = JOBS.iter().map(|(name, ..)| ("Shop.Work", *name));
    let others = [
        ("Shop.Work", "Handle"),
        ("System.Threading.LowLevelLifoSemaphore", "Wait"),
        ("System.Threading.PortableThreadPool+WorkerThread", "WorkerThreadStart"),
    ];
    for (index, (namespace, name)) in (0..).zip(jobs.chain(others)) {
        let module = if namespace.starts_with("System.") { 2 } else { 1 };
        recording.method(&Method { module, ..Method::new(address(index), namespace, name) });
    }
    for job in 0..JOBS.len() as u64 {
        recording.stacks(&[&[job, HANDLE, WORKER].map(|method| address(method) + 8)]);
    }
    recording.stacks(&[&[WAIT, WORKER].map(|method| address(method) + 8)]);
    recording
}
