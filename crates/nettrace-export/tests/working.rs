//! Threads that work and threads that wait: by the kernel's account, by events of contention, by stacks
//! alone.

use clr_events::ThreadState;
use nettrace::{SliceReader, Ticks};
use nettrace_export::report::{TopOptions, TopReport};
use nettrace_export::{
    Format, KernelTimes, Measure, Metric, Omissions, Options, Order, Pattern, Profile, ProfileBuilder,
    ProfileReader, Selection, Track, WriteOptions, write,
};
use nettrace_synth::clr::{self, EXTERNAL, MANAGED, Method};
use nettrace_synth::{Field, Metadata, TraceHeader, Type, Value};

const MS: u64 = 1_000_000;

/// Methods: each is a stack of itself alone.
const METHODS: [(&str, &str); 5] = [
    ("Shop.Bank", "Transfer"),
    ("Shop.Work", "Hot"),
    ("Shop.Queue", "Take"),
    ("System.Threading.LowLevelLifoSemaphore", "Wait"),
    ("System.Threading.PortableThreadPool+WorkerThread", "WorkerThreadStart"),
];
const TRANSFER: u32 = 1;
const HOT: u32 = 2;
const TAKE: u32 = 3;
/// A worker of the pool that spins for work.
const SPIN: u32 = 4;

/// The kernel's samples.
const SWITCH: &str = "cswitch";
const ON_CPU: &str = "cpu";

/// A recording under construction: events in the order in which they are added.
struct Recording(clr::Recording);

impl Recording {
    fn new() -> Self {
        Self::with_header(TraceHeader::default())
    }

    fn with_header(header: TraceHeader) -> Self {
        let mut recording = clr::Recording::with_header(header);
        let one = |method: u64| address(method) + 8;
        recording.stacks(&[&[one(0)], &[one(1)], &[one(2)], &[one(3), one(4)]]).written_by(1);
        recording.module(1, "/a/System.Private.CoreLib.dll");
        for (index, (namespace, name)) in (0..).zip(METHODS) {
            recording.method(&Method::new(address(index), namespace, name));
        }
        Self(recording)
    }

    /// A sample of the kernel's with its value.
    fn kernel(&mut self, name: &str, thread: u64, timestamp: u64, stack_id: u32, value: u64) {
        let sample = Metadata {
            provider: "Universal.Events".into(),
            event_id: if name == SWITCH { 1 } else { 2 },
            version: 1,
            name: name.into(),
            fields: vec![Field::new("Value", Type::UInt64)],
            ..Metadata::default()
        };
        self.0.at(timestamp).thread(thread).described(sample, &[Value::UInt64(value)]).on(stack_id);
    }

    /// A sample each millisecond of `[from, to)`.
    fn samples(&mut self, thread: u64, from: u64, to: u64, stack: u32, mode: u32) -> &mut Self {
        for time in from..to {
            self.0.at(time * MS).thread(thread).sample(stack, mode);
        }
        self
    }

    fn contention(&mut self, thread: u64, start: u64, stop: u64) -> &mut Self {
        self.0.thread(thread).at(start).contention_start(5, 8).on(TRANSFER);
        self.0.at(stop).event(clr::Kind::runtime(91, 0), &clr::contention_stop(0.0)[..2]).on(TRANSFER);
        self
    }

    fn finish(&self) -> Vec<u8> {
        self.0.bytes()
    }
}

fn address(method: u64) -> u64 {
    0x1000 * (method + 1)
}

/// The kernel's account: rounds at these milliseconds, each with the processor time of threads in
/// milliseconds.
fn kernel(rounds: &[(u64, &[(u64, u64)])]) -> KernelTimes {
    let mut times = KernelTimes::default();
    for (time, threads) in rounds {
        times.begin_round(Ticks(time * MS), None);
        for (thread, ran) in *threads {
            times.set(*thread, ran * MS, 0);
        }
    }
    times
}

fn options(metric: Metric) -> Options {
    Options::new(metric).with_idle(false).with_kinds(false)
}

fn read(bytes: &[u8], options: Options, times: Option<KernelTimes>) -> (Profile, Omissions) {
    let open = || nettrace::Reader::new(bytes);
    let read = ProfileReader::new(options).with_kernel_times(times).read_file(open, |_| {}).unwrap();
    (read.profile, read.omissions)
}

/// Milliseconds of a thread in a method, working and blocked.
fn time(profile: &Profile, thread: u64, method: &str) -> (u64, u64) {
    let of = |state| {
        let totals = profile.stack_totals.iter().filter(|total| {
            total.state == state
                && profile.threads[total.thread.index()].id == thread
                && total.stack.is_some_and(|stack| {
                    profile.stacks.frames(stack).any(|frame| profile.frames.name(frame).contains(method))
                })
        });
        (totals.map(|total| total.weight).sum::<u64>() + MS / 2) / MS
    };
    (of(ThreadState::Working), of(ThreadState::Blocked))
}

/// .NET 9 marks no sample as managed code: the kernel's account tells which threads ran, for CPU time as for
/// thread time without waits.
#[test]
fn cpu_time_of_unmarked_samples_is_that_of_the_kernels_account() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 1001, TRANSFER, EXTERNAL).samples(8, 0, 1001, HOT, EXTERNAL);
    let bytes = recording.finish();
    let (profile, _) = read(&bytes, options(Metric::Cpu), None);
    assert_eq!(profile.total(), 0, "samples alone");
    let times = kernel(&[(0, &[(7, 5), (8, 9)]), (1000, &[(8, 809)])]);
    let (cpu, _) = read(&bytes, options(Metric::Cpu), Some(times.clone()));
    // A thread may have 10 ms more: the account lags by that.
    assert_eq!((time(&cpu, 7, "Transfer"), time(&cpu, 8, "Hot")), ((0, 0), (810, 0)));
    assert_eq!(cpu.measure, Measure::WORKING_TIME);
    let (wall, _) = read(&bytes, options(Metric::Wall).with_blocked(false), Some(times));
    assert_eq!((cpu.total(), wall.total()), (810 * MS, 810 * MS));
}

#[test]
fn a_thread_that_the_kernel_did_not_run_is_blocked_in_the_stack_that_it_had() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 1001, TRANSFER, EXTERNAL).samples(8, 0, 1001, HOT, MANAGED);
    let bytes = recording.finish();
    let (profile, omissions) = read(&bytes, options(Metric::Wall), None);
    assert_eq!(time(&profile, 7, "Transfer"), (1000, 0), "samples alone");
    assert_eq!(omissions.unverified, 1000 * MS, "a thread in managed code does not wait");
    let times = kernel(&[(0, &[(7, 5), (8, 9)]), (1000, &[(8, 1009)])]);
    let (profile, omissions) = read(&bytes, options(Metric::Wall), Some(times.clone()));
    assert_eq!(time(&profile, 7, "Transfer"), (0, 1000));
    assert_eq!(time(&profile, 8, "Hot"), (1000, 0));
    assert_eq!((profile.total(), profile.blocked()), (2000 * MS, 1000 * MS));
    assert_eq!(omissions.unverified, 0);
    // Tracks and totals agree, samples go with their time.
    let track = profile.threads[0].track.as_ref().unwrap();
    let spans: Vec<_> = track.iter().map(|span| (span.weight, span.samples)).collect();
    assert_eq!(spans, [(1000 * MS, 1000)]);
    assert_eq!(profile.samples(), 2000);
    // With leaves that say which kind of time it is, it is blocked time.
    let (profile, _) = read(&bytes, options(Metric::Wall).with_kinds(true), Some(times.clone()));
    assert_eq!(time(&profile, 7, "BLOCKED_TIME"), (0, 1000));
    assert_eq!(time(&profile, 8, "CPU_TIME"), (1000, 0));
    // Without tracks nothing but these changes.
    let (profile, _) = read(&bytes, options(Metric::Wall).with_tracks(false), Some(times.clone()));
    assert_eq!(time(&profile, 7, "Transfer"), (0, 1000));
    assert!(profile.threads.iter().all(|thread| thread.track.is_none()));
    // As dotnet-trace shows it: without distinctions.
    let (profile, omissions) = read(&bytes, options(Metric::Wall).with_idle(true), Some(times));
    assert_eq!((time(&profile, 7, "Transfer"), omissions.unverified), ((1000, 0), 0));
}

/// A recording with the runtime's sampler and the kernel's samples: time counts once, and ends with the
/// recording.
#[test]
fn time_that_the_kernel_sampled_does_not_count_by_the_runtimes_samples_as_well() {
    let mut recording = Recording::new();
    for time in 0..=1000 {
        // The kernel's samples of thread 7 begin at 400 ms: it waited since 150 ms, and again until 900 ms.
        if time == 400 || time == 900 {
            let waited: u64 = if time == 400 { 250 } else { 490 };
            recording.kernel(SWITCH, 7, time * MS, TAKE, waited * MS);
        }
        if (401..=410).contains(&time) || time > 900 {
            recording.kernel(ON_CPU, 7, time * MS, HOT, 1);
        }
        recording.samples(7, time, time + 1, TRANSFER, EXTERNAL).samples(8, time, time + 1, HOT, MANAGED);
    }
    let bytes = recording.finish();
    let (profile, _) = read(&bytes, options(Metric::Wall), None);
    let of = |thread: u64| profile.threads.iter().find(|it| it.id == thread).unwrap().track.as_ref().unwrap();
    for thread in [7, 8] {
        let spans: Vec<_> = of(thread).iter().collect();
        assert_eq!(spans.iter().map(|span| span.weight).sum::<u64>(), 1000 * MS, "{thread}");
        let last = spans.last().unwrap();
        assert_eq!(last.start.as_nanos().unsigned_abs() + last.weight, 1000 * MS, "{thread}");
    }
    // The runtime's samples up to 399 ms, then 10 and 100 ms on a processor, and the waits but for what the
    // samples had of them.
    assert_eq!(time(&profile, 7, "Hot").0, 110);
    assert_eq!(time(&profile, 8, "Hot").0, 1000);
}

/// Ten samples of 10 ms each and a hundred of 1 ms, as recordings of 99 and 997 Hz have them when they are
/// merged, and samples of less than a millisecond, of which the recording has whole ones only.
#[test]
fn processor_time_is_the_time_that_samples_stand_for() {
    let mut recording = Recording::new();
    // The runtime's sampler is unaware of processors, and does not count if the kernel samples.
    recording.samples(7, 0, 200, TRANSFER, MANAGED).samples(9, 0, 200, TRANSFER, MANAGED);
    for time in 1..=10 {
        recording.kernel(ON_CPU, 7, time * 10 * MS, HOT, 10);
    }
    for time in 101..=200 {
        recording.kernel(ON_CPU, 7, time * MS, TAKE, 1);
    }
    for quarter in 1..=4 {
        let stack = [TAKE, SPIN][usize::from(quarter == 2)];
        recording.kernel(ON_CPU, 7, 200 * MS + quarter * MS / 4, stack, quarter / 4);
    }
    let bytes = recording.finish();
    let (cpu, omissions) = read(&bytes, options(Metric::Cpu), None);
    assert_eq!((cpu.measure, cpu.total(), cpu.samples()), (Measure::CPU_TIME, 201 * MS, 114));
    assert_eq!((cpu.blocked(), cpu.idle(), omissions.unverified), (0, 0, 0));
    assert_eq!((time(&cpu, 7, "Hot").0, time(&cpu, 7, "Take").0), (100, 101));
    // A stack without any time has its samples.
    let of = |method: &str| {
        let has = |stack| cpu.stacks.frames(stack).any(|frame| cpu.frames.full_name(frame).contains(method));
        let totals = cpu.stack_totals.iter().filter(|total| total.stack.is_some_and(has));
        totals.map(|total| (total.weight, total.samples)).collect::<Vec<_>>()
    };
    assert_eq!(of("WorkerThreadStart"), [(0, 1)]);
    assert_eq!(of("Transfer"), []);
    let top = TopReport::new(&cpu, TopOptions::default().with_number(10));
    assert_eq!((top.unit, top.total, top.samples), ("ns", 201 * MS, 114));
    let row = top.rows.iter().find(|row| row.frame.contains("WorkerThreadStart")).expect("a row");
    assert_eq!((row.inclusive, row.inclusive_percent), (0, 0.0));
    let written = |format| {
        let mut out = Vec::new();
        write(&cpu, format, WriteOptions::new("cpu", "tests"), &mut out).expect("memory");
        out
    };
    let folded = String::from_utf8(written(Format::Folded)).expect("text");
    let sum =
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!((sum, folded.lines().count()), (201 * MS, 3), "{folded}");
    assert!(
        folded.lines().any(|line| line.contains("WorkerThreadStart") && line.ends_with(" 0")),
        "{folded}"
    );
    let others = [Format::Speedscope, Format::Chromium, Format::Firefox, Format::Flamegraph, Format::Svg];
    for format in others.into_iter().chain([Format::Perfetto, Format::Csv]) {
        assert!(!written(format).is_empty(), "{format:?}");
    }
}

#[test]
fn samples_of_less_than_a_millisecond_count_for_the_time_between_two() {
    let header = TraceHeader { sampling_rate: 250_000, ..TraceHeader::default() };
    let mut recording = Recording::with_header(header);
    for quarter in 1..=400 {
        let stack = [HOT, TAKE][usize::from(quarter % 4 == 2)];
        // The writer's sum of time is in milliseconds.
        recording.kernel(ON_CPU, 7, quarter * MS / 4, stack, u64::from(quarter % 4 == 0));
    }
    let bytes = recording.finish();
    let (cpu, _) = read(&bytes, options(Metric::Cpu), None);
    assert_eq!((cpu.total(), cpu.samples()), (100 * MS, 400));
    assert_eq!((time(&cpu, 7, "Hot").0, time(&cpu, 7, "Take").0), (75, 25));
}

/// As `dipc edit` has it: a part has the events of its time.
#[test]
fn parts_of_a_recording_have_the_samples_that_were_taken_in_them() {
    let mut recording = Recording::new();
    for time in 1..=10 {
        recording.kernel(ON_CPU, 7, time * 10 * MS, HOT, 10);
    }
    let bytes = recording.finish();
    for metric in [Metric::Cpu, Metric::Wall] {
        let part = |from: u64, to: u64| {
            let at = |time: u64| Some(nettrace::RelativeTime::from_nanos((time * MS).cast_signed()));
            let selection = Selection::of_time(at(from), at(to));
            let (part, _) = read(&bytes, options(metric).with_selection(selection).with_tracks(true), None);
            let tracks = part.threads.iter().filter_map(|thread| thread.track.as_ref());
            let spans: Vec<_> = tracks.flat_map(Track::iter).collect();
            assert!(spans.iter().all(|span| span.start >= at(from).unwrap()), "{metric:?}");
            assert_eq!(spans.iter().map(|span| span.weight).sum::<u64>(), part.total(), "{metric:?}");
            (part.total() / MS, part.samples())
        };
        assert_eq!(part(0, 20), (10, 1), "{metric:?}");
        assert_eq!(part(0, 35), (30, 3), "{metric:?}");
        assert_eq!(part(35, 1000), (70, 7), "{metric:?}");
    }
}

#[test]
fn the_longest_stack_sleeps_first_and_managed_code_last() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 300, HOT, EXTERNAL).samples(7, 300, 800, TAKE, EXTERNAL);
    recording.samples(7, 800, 1501, TRANSFER, MANAGED);
    let bytes = recording.finish();
    // 600 ms asleep: all of Take, and the rest of it in Hot; 10 ms of tolerance.
    let times = kernel(&[(0, &[(7, 0)]), (1500, &[(7, 890)])]);
    let (profile, _) = read(&bytes, options(Metric::Wall), Some(times));
    assert_eq!(time(&profile, 7, "Take"), (0, 500));
    assert_eq!(time(&profile, 7, "Hot"), (200, 100));
    assert_eq!(time(&profile, 7, "Transfer"), (700, 0));
}

#[test]
fn time_without_a_processor_is_shared_by_all_stacks() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 600, HOT, MANAGED).samples(7, 600, 1001, TRANSFER, MANAGED);
    let mut times = KernelTimes::default();
    times.begin_round(Ticks(0), None);
    times.set(7, 0, 0);
    times.begin_round(Ticks(1000 * MS), None);
    times.set(7, 490 * MS, 500 * MS);
    let (profile, _) = read(&recording.finish(), options(Metric::Wall), Some(times));
    assert_eq!(time(&profile, 7, "Hot"), (300, 300));
    assert_eq!(time(&profile, 7, "Transfer"), (200, 200));
}

#[test]
fn shares_of_many_stacks_add_up_to_the_nanosecond() {
    let mut recording = Recording::new();
    for time in 0..999 {
        recording.samples(7, time, time + 1, if time % 2 == 0 { HOT } else { TRANSFER }, MANAGED);
    }
    recording.samples(7, 999, 1001, HOT, MANAGED);
    let mut times = KernelTimes::default();
    times.begin_round(Ticks(0), None);
    times.set(7, 0, 0);
    times.begin_round(Ticks(1000 * MS), None);
    times.set(7, 333_333_333, 700 * MS);
    let (profile, _) = read(&recording.finish(), options(Metric::Wall), Some(times));
    assert_eq!(profile.total() - profile.blocked(), 343_333_333);
}

#[test]
fn each_interval_has_its_own_account() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 3001, HOT, EXTERNAL);
    let bytes = recording.finish();
    let times = kernel(&[(0, &[(7, 0)]), (1000, &[(7, 1000)]), (2000, &[]), (3000, &[(7, 2000)])]);
    let options = |from: u64, to: u64| {
        let at = |time: u64| Some(nettrace::RelativeTime::from_nanos((time * MS).cast_signed()));
        options(Metric::Wall).with_selection(Selection::of_time(at(from), at(to)))
    };
    for (from, to, expected) in
        [(0, 1000, (1000, 0)), (1000, 2000, (0, 1000)), (1500, 2500, (500, 500)), (2000, 3000, (1000, 0))]
    {
        let (profile, _) = read(&bytes, options(from, to), Some(times.clone()));
        assert_eq!(time(&profile, 7, "Hot"), expected, "{from} to {to}");
    }
}

#[test]
fn time_out_of_the_account_is_unverified() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 3001, TRANSFER, EXTERNAL);
    let times = kernel(&[(1000, &[(7, 0)]), (2000, &[])]);
    let (profile, omissions) = read(&recording.finish(), options(Metric::Wall), Some(times));
    assert_eq!(time(&profile, 7, "Transfer"), (2000, 1000));
    assert_eq!(omissions.unverified, 2000 * MS);
}

#[test]
fn short_lived_threads_share_the_unattributed_process_time() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 1001, HOT, MANAGED);
    recording.samples(8, 100, 501, TRANSFER, EXTERNAL).samples(9, 100, 501, TRANSFER, EXTERNAL);
    let mut times = KernelTimes::default();
    times.begin_round(Ticks(0), Some(0));
    times.set(7, 0, 0);
    times.begin_round(Ticks(1000 * MS), Some(1190 * MS));
    times.set(7, 1000 * MS, 0);
    let (profile, _) = read(&recording.finish(), options(Metric::Wall), Some(times));
    assert_eq!(time(&profile, 7, "Hot"), (1000, 0));
    assert_eq!(time(&profile, 8, "Transfer"), (100, 300));
    assert_eq!(time(&profile, 9, "Transfer"), (100, 300));
}

#[test]
fn threads_with_the_number_of_one_that_has_ended_are_others() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 1000, HOT, MANAGED).samples(7, 1000, 2001, TRANSFER, EXTERNAL);
    let mut times = kernel(&[(0, &[(7, 5000)]), (1000, &[(7, 6000)])]);
    times.begin_round(Ticks(1001 * MS), None);
    times.end(7);
    times.begin_round(Ticks(1002 * MS), None);
    times.set(7, 0, 0);
    times.begin_round(Ticks(2000 * MS), None);
    let (profile, _) = read(&recording.finish(), options(Metric::Wall), Some(times.clone()));
    assert_eq!(time(&profile, 7, "Hot"), (1000, 0));
    assert_eq!(time(&profile, 7, "Transfer"), (1, 999), "the first millisecond is of the other one");
    // Dropped rounds change no later result.
    times.forget_before(Ticks(1500 * MS));
    assert_eq!(times.rounds(), 2);
    let (profile, _) = read(&recording.finish(), options(Metric::Wall), Some(times));
    assert_eq!(time(&profile, 7, "Transfer"), (2, 998));
}

#[test]
fn managed_time_has_kernel_work_without_spinning_workers() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 1001, TAKE, MANAGED).samples(8, 0, 1001, SPIN, MANAGED);
    let bytes = recording.finish();
    let times = kernel(&[(0, &[(7, 0), (8, 0)]), (1000, &[(7, 90), (8, 1000)])]);
    let (profile, _) = read(&bytes, options(Metric::Cpu), Some(times));
    assert_eq!(time(&profile, 7, "Take"), (90, 0));
    assert_eq!((profile.total(), profile.idle()), (90 * MS, 1000 * MS));
    let (profile, _) = read(&bytes, options(Metric::Cpu), None);
    assert_eq!(profile.total(), 1000 * MS, "the worker is idle by its stack");
}

#[test]
fn methods_that_wait_for_work_are_idle_while_they_sleep_and_unmatched_ones_are_said() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 1001, TAKE, MANAGED);
    let bytes = recording.finish();
    let times = kernel(&[(0, &[(7, 0)]), (1000, &[])]);
    let options = |pattern: &str| options(Metric::Wall).with_waits_for_work(vec![Pattern::new(pattern)]);
    let (profile, omissions) = read(&bytes, options("Shop.Queue"), Some(times.clone()));
    assert_eq!((profile.total(), profile.idle()), (0, 1000 * MS));
    assert!(omissions.unmatched_waits.is_empty());
    let (profile, omissions) = read(&bytes, options("Shop.Quue"), Some(times));
    assert_eq!((profile.total(), profile.idle()), (1000 * MS, 0));
    assert_eq!(omissions.unmatched_waits, [0]);
    // Without the kernel: the wait was compiled into the method.
    let mut recording = Recording::new();
    recording.samples(7, 0, 1001, TAKE, EXTERNAL);
    let (profile, _) = read(&recording.finish(), options("Shop.Queue"), None);
    assert_eq!((profile.total(), profile.idle()), (0, 1000 * MS));
}

#[test]
fn contention_events_make_a_thread_blocked_without_the_kernel() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 101, TRANSFER, EXTERNAL).samples(8, 0, 101, HOT, EXTERNAL);
    let half = MS / 2;
    recording.contention(7, 20 * MS + half, 80 * MS + half);
    // A thread without samples does not get time.
    recording.contention(99, 20 * MS, 80 * MS);
    let bytes = recording.finish();
    for metric in [Metric::Wall, Metric::Cpu] {
        let (profile, _) = read(&bytes, options(metric), None);
        let expected = if metric == Metric::Wall { (40, 60) } else { (0, 0) };
        assert_eq!(time(&profile, 7, "Transfer"), expected, "{metric:?}");
        assert_eq!(profile.threads.len(), 2);
    }
    let (profile, _) = read(&bytes, options(Metric::Wall).with_idle(true), None);
    assert_eq!(time(&profile, 7, "Transfer"), (100, 0), "as dotnet-trace shows it");
    // An end that was lost: the thread goes on elsewhere.
    let mut recording = Recording::new();
    recording.samples(7, 0, 50, TRANSFER, EXTERNAL).samples(7, 50, 101, HOT, EXTERNAL);
    recording.contention(7, 20 * MS, 1000 * MS);
    let (profile, _) = read(&recording.finish(), options(Metric::Wall), None);
    assert_eq!(time(&profile, 7, "Transfer"), (20, 30));
    assert_eq!(time(&profile, 7, "Hot"), (50, 0));
}

#[test]
fn intervals_of_a_live_session_use_the_rounds_that_they_have() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 2001, TRANSFER, EXTERNAL);
    let bytes = recording.finish();
    let info = SliceReader::new(&bytes).unwrap().info().cloned();
    let mut events = SliceReader::new(&bytes).unwrap().in_time_order();
    let mut builder = ProfileBuilder::new(options(Metric::Wall).with_order(Order::Time))
        .with_kernel_times(kernel(&[(0, &[(7, 0)])]));
    let mut profiles = Vec::new();
    while let Some(event) = events.next().unwrap() {
        if event.relative_time().as_nanos() == (1000 * MS).cast_signed() {
            builder.kernel_times_mut().unwrap().begin_round(Ticks(1000 * MS), None);
            profiles.push(builder.take(info.as_ref()).unwrap().0);
        }
        builder.add(&event);
    }
    let times = builder.kernel_times_mut().unwrap();
    times.forget_before(Ticks(1000 * MS));
    times.begin_round(Ticks(2000 * MS), None);
    times.set(7, 1000 * MS, 0);
    profiles.push(builder.take(info.as_ref()).unwrap().0);
    // An interval between two rounds that belongs to two profiles counts once.
    let mut builder = ProfileBuilder::new(options(Metric::Wall).with_order(Order::Time))
        .with_kernel_times(kernel(&[(0, &[(7, 0)]), (800, &[]), (1200, &[(7, 200)]), (2000, &[])]));
    let mut events = SliceReader::new(&bytes).unwrap().in_time_order();
    let mut worked = 0;
    while let Some(event) = events.next().unwrap() {
        if event.relative_time().as_nanos() == (1000 * MS).cast_signed() {
            worked += time(&builder.take(info.as_ref()).unwrap().0, 7, "Transfer").0;
        }
        builder.add(&event);
    }
    worked += time(&builder.take(info.as_ref()).unwrap().0, 7, "Transfer").0;
    assert!((200..=210).contains(&worked), "{worked}");
    // A thread's last sample of an interval weighs nothing.
    assert_eq!(time(&profiles[0], 7, "Transfer"), (0, 999));
    assert_eq!(time(&profiles[1], 7, "Transfer"), (1000, 0));
}

#[test]
fn threads_without_a_name_have_the_one_that_the_kernel_has() {
    let mut recording = Recording::new();
    recording.samples(7, 0, 100, HOT, MANAGED).samples(8, 0, 100, HOT, MANAGED);
    let mut times = kernel(&[(0, &[(7, 0), (8, 0)]), (100, &[(7, 100), (8, 100)])]);
    times.name_thread(7, "orders");
    let (profile, _) = read(&recording.finish(), options(Metric::Wall), Some(times));
    let threads = |id| profile.threads.iter().find(|thread| thread.id == id).unwrap();
    assert_eq!((threads(7).name.as_deref(), &*threads(7).frame), (Some("orders"), "Thread (7) (orders)"));
    assert_eq!((threads(8).name.as_deref(), &*threads(8).frame), (None, "Thread (8)"));
}
