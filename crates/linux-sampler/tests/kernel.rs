//! The kernel's samples of this very test and of its children. If the kernel permits none, each test prints
//! that and ends.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(clippy::cast_precision_loss, reason = "ratios of times")]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use linux_proc_stat::{SchedStat, thread_folder};
use linux_sampler::{
    Error, OffCpu, OffCpuInterval, OffCpuTracker, Processes, Record, RecordKind, Rights, SampleEvent,
    Sampler, SamplerConfig, Scope, ThreadKey, Tracepoint, Trial, Unwinder, spawn_prepared,
};

const WAIT: Duration = Duration::from_millis(50);
const DEADLINE: Duration = Duration::from_secs(60);

/// Opens a sampler; `None`, with a printed message, if it is not permitted.
fn open(config: &SamplerConfig) -> Option<Sampler> {
    match Sampler::open(config) {
        Ok(sampler) => Some(sampler),
        Err(error @ Error::NotPermitted { .. }) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap()
}

fn own_tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Returns the times of a thread; `None` before it has run.
fn sched_stat(pid: i32, tid: i32) -> Option<SchedStat> {
    let folder = thread_folder(pid.unsigned_abs(), tid.unsigned_abs());
    SchedStat::parse(&linux_proc_stat::read(&folder.join("schedstat")).unwrap())
}

fn cpu_ns(pid: i32, tid: i32) -> u64 {
    sched_stat(pid, tid).map_or(0, |times| times.cpu_ns)
}

/// Returns how often a thread left a processor.
fn switches(pid: i32, tid: i32) -> u64 {
    let folder = thread_folder(pid.unsigned_abs(), tid.unsigned_abs());
    let status = linux_proc_stat::read(&folder.join("status")).unwrap();
    let lines = std::str::from_utf8(&status).unwrap().lines();
    let counts = lines.filter(|line| line.contains("voluntary_ctxt_switches"));
    counts.map(|line| line.split_whitespace().next_back().unwrap().parse::<u64>().unwrap()).sum()
}

/// Asserts that the samples of a thread cover its time, which is between two numbers of nanoseconds.
///
/// A thread that is preempted is charged until the wakeup that preempts it, its samples until it has left
/// the processor: 14 µs later, measured in a virtual machine.
fn assert_covers(covered: u64, (least, most): (u64, u64), switches: u64) {
    let (least, most) = (least as f64 * 0.95, most as f64 * 1.02 + switches as f64 * 25e3);
    assert!((least..=most).contains(&(covered as f64)), "{covered} ns of {least} to {most}, {switches}");
}

/// A child that is killed at the end of the test.
struct Busy(Child);

impl Busy {
    /// Starts a shell that computes for ever.
    fn start() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    /// Pins the child to one processor, so that this processor's buffer has all of its records.
    fn pin(&self) {
        let pid = rustix::process::Pid::from_raw(self.pid());
        let allowed = rustix::thread::sched_getaffinity(pid).unwrap();
        let processor = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap();
        let mut one = rustix::thread::CpuSet::new();
        one.set(processor);
        rustix::thread::sched_setaffinity(pid, &one).unwrap();
    }

    fn cpu_ns(&self) -> u64 {
        cpu_ns(self.pid(), self.pid())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads records until `done` returns true, then the remaining ones.
fn read_until(sampler: &mut Sampler, mut handle: impl FnMut(&Record<'_>), mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < DEADLINE, "nothing after {DEADLINE:?}");
        for record in sampler.read(WAIT).unwrap() {
            handle(&record);
        }
    }
    for record in sampler.finish() {
        handle(&record);
    }
}

#[test]
fn samples_stand_for_the_time_that_the_kernel_says_a_thread_ran() {
    let busy = Busy::start();
    // The sampler begins between two looks at the clock, and ends between two others: other threads may run
    // for a long time between any two lines here.
    let before_begin = busy.cpu_ns();
    let Some(mut sampler) = open(&SamplerConfig::of_process(busy.pid())) else { return };
    let after_begin = busy.cpu_ns();
    let mut covered = 0_u64;
    let mut before_end = 0;
    let handle = |record: &Record<'_>| {
        if let RecordKind::Sample(sample) = record.kind {
            assert_eq!((record.thread.pid, sample.event), (busy.pid(), SampleEvent::Cpu));
            covered += sample.period;
        }
    };
    read_until(&mut sampler, handle, || {
        before_end = busy.cpu_ns();
        before_end - after_begin > 1_000_000_000
    });
    let (least, most) = (before_end - after_begin, busy.cpu_ns() - before_begin);
    assert_covers(covered, (least, most), switches(busy.pid(), busy.pid()));
}

#[test]
fn threads_that_begin_later_are_sampled_once_each() {
    // The samplers of other tests take stacks at each switch of these threads, which costs them time that the
    // scheduler does not count for them.
    if !is_alone("threads_that_begin_later_are_sampled_once_each") {
        return;
    }
    let Some(mut sampler) = open(&SamplerConfig::of_process(own_pid())) else { return };
    let (done, results) = mpsc::channel();
    let work = |done: mpsc::Sender<i32>, end: mpsc::Receiver<()>| {
        let tid = own_tid();
        while cpu_ns(own_pid(), tid) < 300_000_000 {
            std::hint::black_box((0..10_000_u64).sum::<u64>());
        }
        done.send(tid).unwrap();
        // The thread waits until its time has been read, so that the kernel counts all of it.
        let _ = end.recv();
    };
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (done, (end, ended)) = (done.clone(), mpsc::channel());
            (std::thread::spawn(move || work(done, ended)), end)
        })
        .collect();
    let mut covered = BTreeMap::<i32, u64>::new();
    let mut started = BTreeSet::new();
    let handle = |record: &Record<'_>| match record.kind {
        RecordKind::Sample(sample) => *covered.entry(record.thread.tid).or_default() += sample.period,
        RecordKind::Started { thread, .. } => {
            started.insert(thread.tid);
        }
        _ => {}
    };
    let mut tids = Vec::new();
    read_until(&mut sampler, handle, || {
        tids.extend(results.try_iter());
        tids.len() == workers.len()
    });
    for tid in tids {
        let ran = cpu_ns(own_pid(), tid);
        assert!(started.contains(&tid), "{tid} of {started:?}");
        assert_covers(covered.get(&tid).copied().unwrap_or(0), (ran, ran), switches(own_pid(), tid));
    }
    for (worker, end) in workers {
        drop(end);
        worker.join().unwrap();
    }
}

#[inline(never)]
fn sleep_in_a_known_function(time: Duration) {
    std::thread::sleep(std::hint::black_box(time));
    std::hint::black_box(time);
}

#[test]
fn time_off_the_processor_is_that_of_the_sleeps_and_has_their_stack() {
    let pid = own_pid();
    let config = SamplerConfig::of_process(pid).with_frequency(0).with_off_cpu(OffCpu::Stacks { every: 1 });
    let Some(mut sampler) = open(&config) else { return };
    let (sender, receiver) = mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        let sleep = |_| {
            let start = Instant::now();
            sleep_in_a_known_function(Duration::from_millis(20));
            start.elapsed()
        };
        sender.send((own_tid(), (0..10).map(sleep).collect::<Vec<_>>())).unwrap();
    });
    let (mut processes, mut unwinder, mut tracker) =
        (Processes::new(), Unwinder::new(), OffCpuTracker::new());
    processes.of(pid);
    let mut intervals = Vec::new();
    let mut frames = Vec::new();
    let handle = |record: &Record<'_>| {
        processes.handle(record);
        if let RecordKind::Sample(sample) = record.kind {
            unwinder.user_stack(record.thread, &sample, &mut processes, &mut frames);
            tracker.stack(record.thread, frames.clone());
        }
        intervals.extend(tracker.handle(record));
    };
    read_until(&mut sampler, handle, || sleeper.is_finished());
    let (tid, measured) = receiver.recv().unwrap();
    sleeper.join().unwrap();
    let is_sleep = |interval: &&OffCpuInterval<_>| {
        interval.thread.tid == tid && !interval.preempted && interval.to_ns - interval.from_ns >= 19_000_000
    };
    let slept: Vec<_> = intervals.iter().filter(is_sleep).collect();
    assert_eq!(slept.len(), measured.len(), "{intervals:?}");
    let total: u64 = slept.iter().map(|interval| interval.to_ns - interval.from_ns).sum();
    let own = measured.iter().sum::<Duration>();
    assert!(u128::from(total) <= own.as_nanos(), "{total} of {own:?}");
    if !sampler.access().off_cpu_stacks {
        eprintln!("SKIPPED: the kernel permits no stacks of waits");
        return;
    }
    let function = sleep_in_a_known_function as fn(Duration) as usize as u64;
    let mapping = processes.of(pid).at(function).unwrap();
    let image = mapping.open_image(pid).unwrap();
    let symbols = image.symbols().unwrap();
    let symbol = |address| Some(symbols.at(mapping.address_in(&image, address)?)?.start);
    for interval in slept {
        let stack = interval.stack.as_ref().unwrap();
        assert!(stack.iter().any(|frame| symbol(frame - 1) == symbol(function)), "{stack:x?}");
    }
}

#[cfg(feature = "nettrace")]
#[test]
fn a_thread_that_waits_all_the_time_has_that_time_and_its_stack() {
    let sleeper = Busy(Command::new("sleep").arg("1000").spawn().unwrap());
    let wait = || linux_proc_stat::read(&thread_folder(sleeper.0.id(), sleeper.0.id()).join("wchan"));
    let start = Instant::now();
    while !String::from_utf8_lossy(&wait().unwrap()).contains("sleep") {
        assert!(start.elapsed() < DEADLINE);
        std::thread::sleep(Duration::from_millis(5));
    }
    let config = SamplerConfig::of_process(sleeper.pid()).with_off_cpu(OffCpu::Stacks { every: 1 });
    let Some(mut sampler) = open(&config) else { return };
    let start = Sampler::now_ns();
    let mut recording =
        linux_sampler::RecordingWriter::new(0, start, Some(sleeper.pid()), &config, "").unwrap();
    recording.existing_process(sleeper.pid()).unwrap();
    let clock = Instant::now();
    read_until(
        &mut sampler,
        |record| recording.record(record).unwrap(),
        || clock.elapsed() > Duration::from_millis(300),
    );
    let end = Sampler::now_ns();
    recording.finish(end).unwrap();
    let mut events = nettrace::SliceReader::new(recording.bytes()).unwrap();
    let mut waits = Vec::new();
    while let Some(event) = events.next().unwrap() {
        if event.name() == "cswitch" {
            let value =
                |value| if let nettrace::Value::U64(value) = value { value } else { panic!("{value:?}") };
            let values = event.fields().map(|field| value(field.unwrap().1));
            waits.push((values.collect::<Vec<_>>(), event.stack().len()));
        }
    }
    let [(values, frames)] = &waits[..] else { panic!("{waits:?}") };
    assert_eq!(values[..], [end - start, 0, end - start]);
    assert!(*frames >= 2, "{waits:?}");
}

#[test]
fn a_full_buffer_loses_records_and_says_how_many() {
    let busy = Busy::start();
    busy.pin();
    let config = SamplerConfig::of_process(busy.pid()).with_buffer_pages(1).with_stack_bytes(2048);
    let before_begin = busy.cpu_ns();
    let Some(mut sampler) = open(&config) else { return };
    let (start, after_begin) = (Instant::now(), busy.cpu_ns());
    while busy.cpu_ns() - after_begin < 300_000_000 {
        assert!(start.elapsed() < DEADLINE);
        std::thread::yield_now();
    }
    // The record of a loss is written once there is space again.
    let (mut lost, mut seen) = (0_u64, 0_u64);
    #[cfg(feature = "nettrace")]
    let mut recording = linux_sampler::RecordingWriter::new(0, 0, Some(busy.pid()), &config, "").unwrap();
    let count = |record: &Record<'_>| {
        match record.kind {
            RecordKind::Lost { count } | RecordKind::LostSamples { count } => lost += count,
            RecordKind::Sample(_) => seen += 1,
            _ => {}
        }
        #[cfg(feature = "nettrace")]
        recording.record(record).unwrap();
    };
    let until = busy.cpu_ns() + 50_000_000;
    let mut before_end = 0;
    read_until(&mut sampler, count, || {
        before_end = busy.cpu_ns();
        before_end > until
    });
    let (least, most) = (before_end - after_begin, busy.cpu_ns() - before_begin);
    assert!(lost > seen && seen > 0, "{lost} lost, {seen} samples");
    #[cfg(feature = "nettrace")]
    {
        let counts = recording.finish(Sampler::now_ns()).unwrap();
        assert_eq!((counts.lost, counts.cpu_samples), (lost, seen));
        // A reader of the recording sees the same.
        let mut events = nettrace::SliceReader::new(recording.bytes()).unwrap();
        let mut cpu_events = 0;
        while let Some(event) = events.next().unwrap() {
            cpu_events += u64::from(event.name() == "cpu");
        }
        assert_eq!((events.loss().total(), cpu_events), (lost, seen));
    }
    // Together there is one sample for each period that the child ran.
    let periods = |ns| ns as f64 * 997e-9;
    let (low, high) = ((lost + seen) as f64 / periods(least), (lost + seen) as f64 / periods(most));
    assert!(low >= 0.9 && high <= 1.05, "{lost} lost, {seen} samples: {low} to {high}");
}

#[test]
fn the_end_of_a_process_is_seen() {
    let mut busy = Busy::start();
    let Some(mut sampler) = open(&SamplerConfig::of_process(busy.pid())) else { return };
    assert_eq!(sampler.running(), 1);
    busy.0.kill().unwrap();
    busy.0.wait().unwrap();
    let start = Instant::now();
    while sampler.running() > 0 {
        assert!(start.elapsed() < DEADLINE);
        sampler.read(WAIT).unwrap().for_each(drop);
    }
}

#[test]
fn a_program_is_sampled_from_its_first_instruction() {
    let open = |pid| (pid, Sampler::open(&SamplerConfig::of_process(pid)));
    let (mut child, (pid, sampler)) = spawn_prepared(Command::new("true"), open).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(u32::try_from(pid).unwrap(), child.id());
    let mut sampler = match sampler {
        Ok(sampler) => sampler,
        Err(error) => return eprintln!("SKIPPED: {error}"),
    };
    let (mut programs, mut mappings) = (Vec::new(), 0);
    let handle = |record: &Record<'_>| match record.kind {
        RecordKind::Name { exec: true, name } => programs.push(String::from_utf8_lossy(name).into_owned()),
        RecordKind::Map(_) => mappings += 1,
        _ => {}
    };
    read_until(&mut sampler, handle, || true);
    assert_eq!(programs, ["true"]);
    // The program, its loader and the C library.
    assert!(mappings >= 2, "{mappings}");
}

#[test]
fn a_program_that_is_not_there_is_an_error_and_leaves_no_process() {
    let (sender, pids) = mpsc::channel();
    let missing = spawn_prepared(Command::new("/nonexistent"), |pid| sender.send(pid).unwrap());
    assert_eq!(missing.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let pid = pids.recv().unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    let error = Sampler::open(&SamplerConfig::of_process(0x3fff_fff0)).unwrap_err();
    assert!(matches!(error, Error::NoProcess { pid: 0x3fff_fff0 }), "{error}");
}

#[test]
fn child_processes_are_left_out() {
    let Some(mut sampler) = open(&SamplerConfig::of_process(own_pid())) else { return };
    if !sampler.access().children_excluded {
        eprintln!("SKIPPED: Linux before 5.13 cannot leave children out");
        return;
    }
    let child = Busy::start();
    let mut pids = BTreeSet::new();
    let handle = |record: &Record<'_>| {
        if let RecordKind::Sample(_) = record.kind {
            pids.insert(record.thread.pid);
        }
    };
    read_until(&mut sampler, handle, || child.cpu_ns() > 100_000_000);
    assert!(!pids.contains(&child.pid()), "{pids:?}");
}

#[test]
fn a_trial_matches_the_permissions_of_a_sampler() {
    let busy = Busy::start();
    let trial = Trial::of_process(busy.pid()).unwrap();
    match Sampler::open(&SamplerConfig::of_process(busy.pid())) {
        Ok(sampler) => {
            assert_eq!((trial.user.is_ok(), trial.kernel.is_ok()), (true, sampler.access().kernel));
        }
        Err(Error::NotPermitted { reason, .. }) => {
            assert_eq!(trial.user.as_ref().unwrap_err().obstacle, reason);
        }
        Err(error) => panic!("{error}"),
    }
    let rights = Rights::of_self();
    if rights.has_capability {
        assert!(trial.kernel.is_ok() || rights.has_filter, "{trial:?} {rights:?}");
    }
    assert!(matches!(Trial::of_process(0x3fff_fff0), Err(Error::NoProcess { .. })));
}

/// Returns true if this is a process for the test `name` alone. If not, runs the test in one: it would
/// disturb the others, or they would disturb it.
fn is_alone(name: &str) -> bool {
    const ALONE: &str = "LINUX_SAMPLER_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let status = command.args([name, "--exact", "--nocapture"]).env(ALONE, "1").status();
    assert!(status.unwrap().success());
    false
}

/// Two threads that wake each other until they are told to end; each hand-over is a switch.
struct HandOver {
    threads: Vec<std::thread::JoinHandle<()>>,
    tids: Vec<i32>,
    end: Arc<AtomicBool>,
}

impl HandOver {
    fn start() -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let (first, second) = (mpsc::sync_channel(1), mpsc::sync_channel(1));
        first.0.send(()).unwrap();
        let (tids, started) = mpsc::channel();
        let run = |wait: mpsc::Receiver<()>, wake: mpsc::SyncSender<()>| {
            let (end, tids) = (Arc::clone(&end), tids.clone());
            std::thread::spawn(move || {
                tids.send(own_tid()).unwrap();
                while !end.load(Ordering::Relaxed) && wait.recv().is_ok() && wake.send(()).is_ok() {}
            })
        };
        let threads = vec![run(first.1, second.0), run(second.1, first.0)];
        let tids = started.iter().take(2).collect();
        Self { threads, tids, end }
    }

    fn end(self) {
        self.end.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Checks that the stacks of a pair represent all of its switches. Returns the numbers of stacks and
/// switches, and of lost stacks.
fn check_weights(mut sampler: Sampler, pair: HandOver) -> Option<(u64, u64, u64)> {
    if !sampler.access().off_cpu_stacks {
        eprintln!("SKIPPED: the kernel permits no stacks of waits");
        pair.end();
        return None;
    }
    let switches = Cell::new(0_u64);
    let (mut stacks, mut represented, mut lost) = (0_u64, 0_u64, 0_u64);
    let start = Instant::now();
    let handle = |record: &Record<'_>| match record.kind {
        RecordKind::LostStacks { count } => lost += count,
        _ if !pair.tids.contains(&record.thread.tid) => {}
        RecordKind::SwitchOut { .. } => switches.set(switches.get() + 1),
        RecordKind::Sample(sample) => {
            stacks += 1;
            represented += sample.period;
        }
        _ => {}
    };
    // On a loaded machine the switches take longer.
    let is_enough = || start.elapsed() > Duration::from_secs(4) && switches.get() > 4_000;
    read_until(&mut sampler, handle, || is_enough() || start.elapsed() > Duration::from_secs(60));
    pair.end();
    let switches = switches.get();
    let ratio = represented as f64 / switches as f64;
    eprintln!("{switches} switches, {stacks} stacks that represent {represented}, {lost} stacks lost");
    assert!(switches > 4_000, "{switches} switches");
    assert!((0.95..=1.05).contains(&ratio), "{represented} of {switches}: {ratio}");
    Some((stacks, switches, lost))
}

/// Checks that few switches of a pair have a stack. Before the first adjustment each has one.
fn check_thinning(sampler: Sampler, pair: HandOver) {
    if let Some((stacks, switches, _)) = check_weights(sampler, pair) {
        assert!(stacks * 2 < switches, "{stacks} stacks of {switches} switches");
    }
}

fn thinned() -> SamplerConfig {
    SamplerConfig::of_process(own_pid())
        .with_frequency(0)
        .with_off_cpu(OffCpu::Stacks { every: 1 })
        .with_off_cpu_stack_bytes(1024)
        .with_switch_stacks_per_second(200)
}

#[test]
fn threads_with_many_switches_have_fewer_stacks() {
    if !is_alone("threads_with_many_switches_have_fewer_stacks") {
        return;
    }
    let pair = HandOver::start();
    match open(&thinned()) {
        Some(sampler) => check_thinning(sampler, pair),
        None => pair.end(),
    }
}

#[test]
fn stacks_that_find_no_room_are_represented_by_others_and_lose_no_switch() {
    if !is_alone("stacks_that_find_no_room_are_represented_by_others_and_lose_no_switch") {
        return;
    }
    let config =
        thinned().with_switch_stacks_per_second(0).with_off_cpu_stack_bytes(8192).with_buffer_pages(32);
    let Some(sampler) = open(&config) else { return };
    let pair = HandOver::start();
    // Nobody reads meanwhile.
    std::thread::sleep(Duration::from_millis(300));
    if let Some((stacks, switches, lost)) = check_weights(sampler, pair) {
        assert!(lost > 0 && stacks < switches, "{lost} lost, {stacks} stacks of {switches} switches");
    }
}

#[test]
fn threads_that_began_later_have_fewer_stacks_as_well() {
    if !is_alone("threads_that_began_later_have_fewer_stacks_as_well") {
        return;
    }
    let Some(sampler) = open(&thinned()) else { return };
    check_thinning(sampler, HandOver::start());
}

#[test]
fn off_cpu_time_matches_schedstat() {
    let busy = Busy::start();
    let sleeper = Command::new("sh").args(["-c", "while :; do sleep 0.01; done"]).spawn().unwrap();
    let sleeper = Busy(sleeper);
    busy.pin();
    for (process, name) in [(&busy, "computes"), (&sleeper, "sleeps")] {
        let config = SamplerConfig::of_process(process.pid()).with_frequency(0).with_off_cpu(OffCpu::Times);
        let Some(mut sampler) = open(&config) else { return };
        let times = || sched_stat(process.pid(), process.pid()).unwrap();
        let (start, before) = (Sampler::now_ns(), times());
        let mut tracker = OffCpuTracker::<()>::new();
        // On a busy machine it may wait for a processor when the time begins, or it sleeps.
        let thread = ThreadKey { pid: process.pid(), tid: process.pid() };
        tracker.existing(thread, start, start, (name == "sleeps").then_some(None));
        let (mut blocked, mut runnable) = (0_u64, 0_u64);
        let mut add = |interval: OffCpuInterval<()>| {
            let length = interval.to_ns - interval.from_ns;
            *(if interval.preempted { &mut runnable } else { &mut blocked }) += length;
        };
        let handle = |record: &Record<'_>| {
            if record.thread.tid == process.pid() {
                tracker.handle(record).into_iter().for_each(&mut add);
            }
        };
        let clock = Instant::now();
        read_until(&mut sampler, handle, || clock.elapsed() > Duration::from_secs(3));
        let (end, after) = (Sampler::now_ns(), times());
        tracker.finish(end).for_each(&mut add);
        let (wall, ran) = (end - start, after.cpu_ns - before.cpu_ns);
        let off = blocked + runnable;
        eprintln!("{name}: {wall} ns, {ran} on CPU, {blocked} blocked, {runnable} preempted");
        // The time on and off the processors is all time.
        let ratio = (ran + off) as f64 / wall as f64;
        assert!((0.95..=1.05).contains(&ratio), "{name}: {ran} + {off} of {wall}: {ratio}");
        // The run queue's time is the preempted one, and that from waking up to running, which is in the
        // blocked intervals.
        let queued = after.queue_ns - before.queue_ns;
        assert!(runnable as f64 <= queued as f64 * 1.05 + 5e6, "{name}: {runnable} of {queued}");
    }
}

/// The share of the CPU time of a process with 1,000 short threads that is sampled.
fn share_of_short_threads(scope: Scope) -> Option<f64> {
    let mut sampler = open(&SamplerConfig::new(scope))?;
    let (tid, process_time) = (own_tid(), rustix::time::ClockId::ProcessCPUTime);
    let now = || {
        let now = rustix::time::clock_gettime(process_time);
        Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap())
    };
    let before = now();
    let short = std::thread::spawn(|| {
        for _ in 0..1_000 {
            let work = || {
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(1) {
                    std::hint::black_box((0..1_000_u64).sum::<u64>());
                }
            };
            std::thread::spawn(work).join().unwrap();
        }
    });
    let (mut covered, mut threads) = (0_u64, BTreeSet::new());
    let handle = |record: &Record<'_>| match record.kind {
        RecordKind::Sample(sample) if record.thread.tid != tid => covered += sample.period,
        RecordKind::Ended { thread } if thread.pid == own_pid() => {
            threads.insert(thread.tid);
        }
        _ => {}
    };
    read_until(&mut sampler, handle, || short.is_finished());
    let ran = now().saturating_sub(before);
    assert!(threads.len() >= 1_000, "{} threads ended", threads.len());
    Some(covered as f64 / ran.as_nanos() as f64)
}

#[test]
fn short_threads_are_sampled_by_processor() {
    if !is_alone("short_threads_are_sampled_by_processor") {
        return;
    }
    let Some(by_thread) = share_of_short_threads(Scope::Processes(vec![own_pid()])) else { return };
    let Some(by_processor) = share_of_short_threads(Scope::ProcessesByProcessor(vec![own_pid()])) else {
        return;
    };
    eprintln!("of 1,000 threads of a millisecond: {by_thread:.3} by thread, {by_processor:.3} by processor");
    assert!(by_processor > 0.85 && by_processor > by_thread, "{by_thread} {by_processor}");
}

/// The processes of the samples of a scope, while a child computes for `ns`.
fn sampled_processes(scope: Scope, busy: &Busy, ns: u64) -> Option<BTreeMap<i32, u64>> {
    let mut sampler = open(&SamplerConfig::new(scope))?;
    let mut processes = BTreeMap::new();
    let until = busy.cpu_ns() + ns;
    let handle = |record: &Record<'_>| {
        if let RecordKind::Sample(sample) = record.kind {
            *processes.entry(record.thread.pid).or_default() += sample.period;
        }
    };
    read_until(&mut sampler, handle, || busy.cpu_ns() > until);
    Some(processes)
}

#[test]
fn the_whole_machine_is_sampled() {
    let (one, other) = (Busy::start(), Busy::start());
    let Some(processes) = sampled_processes(Scope::Machine, &one, 300_000_000) else { return };
    assert!(processes[&one.pid()] > 250_000_000, "{processes:?}");
    assert!(processes.contains_key(&other.pid()), "{processes:?}");
}

/// A cgroup of the kernel's `perf_event` controller, or of the one hierarchy of cgroup v2.
struct Cgroup(std::path::PathBuf);

impl Cgroup {
    fn create() -> Option<Self> {
        let name = format!("linux-sampler-test-{}", own_pid());
        let roots = ["/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
            .map(std::path::Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists())?;
        let folder = root.join(name);
        std::fs::create_dir(&folder).ok()?;
        Some(Self(folder))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The cgroup's processes were killed, and leave it a moment later.
        let start = Instant::now();
        while std::fs::remove_dir(&self.0).is_err() && start.elapsed() < DEADLINE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_cgroup_is_sampled_and_nothing_else() {
    let Some(cgroup) = Cgroup::create() else { return eprintln!("SKIPPED: cgroups cannot be created here") };
    let (inside, outside) = (Busy::start(), Busy::start());
    std::fs::write(cgroup.0.join("cgroup.procs"), inside.pid().to_string()).unwrap();
    let scope = Scope::Cgroup(cgroup.0.clone());
    let Some(processes) = sampled_processes(scope, &inside, 300_000_000) else { return };
    assert!(processes[&inside.pid()] > 250_000_000, "{processes:?}");
    assert!(!processes.contains_key(&outside.pid()), "{processes:?}");
    drop(inside);
}

#[test]
fn tracepoints_have_the_events_of_the_process() {
    // Few kernels of containers have tracefs; `cargo xtask vm` has one.
    let fork = match Tracepoint::open("sched", "sched_process_fork") {
        Ok(fork) => fork,
        Err(error) => return eprintln!("SKIPPED: {error}"),
    };
    let config = SamplerConfig::of_process(own_pid()).with_frequency(0).with_tracepoints(vec![fork.clone()]);
    let Some(mut sampler) = open(&config) else { return };
    // Another process starts children meanwhile.
    let mut other = Command::new("sh").args(["-c", "for i in 1 2 3; do (:); done"]).spawn().unwrap();
    let started: BTreeSet<i32> = (0..3)
        .map(|_| std::thread::spawn(own_tid).join().unwrap())
        .chain([i32::try_from(other.id()).unwrap()])
        .collect();
    other.wait().unwrap();
    let mut seen = BTreeSet::new();
    let mut collect = |record: Record<'_>| {
        let RecordKind::Tracepoint(event) = record.kind else { return };
        let pid = fork.value("child_pid", event.data).unwrap();
        assert_eq!((event.tracepoint, record.thread.pid), (0, own_pid()));
        seen.insert(i32::from_ne_bytes(pid.try_into().unwrap()));
    };
    sampler.read(WAIT).unwrap().for_each(&mut collect);
    sampler.finish().for_each(&mut collect);
    // Other tests start threads in this process, too.
    assert!(seen.is_superset(&started), "{started:?} of {seen:?}");
}
