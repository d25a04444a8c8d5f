//! The kernel's samples of a real process: time on and off the processors.
//!
//! The workload was told to sleep 120 and 100 ms, and to compute until 250 ms of its own clock had passed.

#[path = "../../nettrace/tests/reference/files.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod files;

use std::collections::BTreeMap;

use clr_events::ThreadState;
use clr_events::code::CodeOrigin;
use nettrace::{SliceReader, Value};
use nettrace_export::diff::{Basis, Comparison, ComparisonOptions, Kind, Run, RunBuilder, RunOptions};
use nettrace_export::report::{
    BlockedTime, Collections, blocked_methods, blocked_time, blocked_waits, processor_time, ready_methods,
    top,
};
use nettrace_export::{
    Format, FrameKind, KernelTimes, KernelWait, Measure, Metric, Options, Pattern, Profile, WriteOptions,
    pseudo_frames, write,
};

fn bytes() -> Vec<u8> {
    files::bytes_of(&files::testdata().join("traces/net9-kernel.nettrace.xz"))
}

fn profile(bytes: &[u8], options: Options) -> Profile {
    nettrace_export::profile(std::io::Cursor::new(bytes), options).expect("events").0
}

fn working(metric: Metric) -> Options {
    Options::new(metric).with_idle(false).with_kinds(false)
}

/// The sums of the fields of the kernel's events, by the other decoder: samples, milliseconds on the
/// processors, nanoseconds off them, and the preempted part of the latter.
fn recorded(bytes: &[u8]) -> [u64; 4] {
    let mut sums = [0; 4];
    let mut reader = SliceReader::new(bytes).expect("a recording");
    reader
        .for_each(|event| {
            if event.provider() != "Universal.Events" {
                return;
            }
            let fields: BTreeMap<_, _> = event.fields().map(|field| field.expect("a field")).collect();
            let Some(&Value::U64(value)) = fields.get("Value") else { panic!("{fields:?}") };
            match event.name() {
                "cpu" => {
                    sums[0] += 1;
                    sums[1] += value;
                }
                "cswitch" => {
                    sums[2] += value;
                    sums[3] += if fields["Preempted"] == Value::U64(1) { value } else { 0 };
                }
                other => panic!("{other}"),
            }
        })
        .expect("events");
    sums
}

/// The weight of all totals with a frame of this method.
fn inclusive(profile: &Profile, method: &str) -> u64 {
    let has =
        |stack| profile.stacks.frames(stack).any(|frame| profile.frames.full_name(frame).contains(method));
    let totals = profile.stack_totals.iter().filter(|total| total.stack.is_some_and(has));
    totals.map(|total| total.weight).sum()
}

/// The recording as a side of a comparison. The kernel's account, if any, says that the process ran for so
/// many nanoseconds, and that one thread could run for as long again without a processor.
fn run(bytes: &[u8], account: Option<u64>) -> Run {
    let recording = SliceReader::new(bytes).expect("a recording");
    let info = recording.info().expect("its header").clone();
    let times = account.map(|ran| {
        let mut times = KernelTimes::default();
        times.begin_round(info.start_ticks, Some(5));
        times.set(1, 0, 0);
        let end = nettrace::RelativeTime::from_nanos(3_600_000_000_000);
        times.begin_round(info.ticks(end), Some(5 + ran * 3600));
        times.set(1, ran * 3600, ran * 3600);
        times
    });
    let mut builder = RunBuilder::new(RunOptions::default().with_kernel_times(times), Some(&info));
    let mut events = recording.in_time_order();
    events.for_each(|event| builder.add(&event)).expect("events");
    builder.finish(Some(&info))
}

/// A sample stands for one period of the sampler's clock, which misses some. The account of an hour, of
/// which the recording is a small part, has the time of a second for each second.
#[test]
fn cpu_time_of_a_run_is_the_kernels_account_of_it() {
    let bytes = bytes();
    let options = ComparisonOptions::default().with_basis(Basis::Run);
    let sampled = run(&bytes, None);
    let [_, milliseconds, ..] = recorded(&bytes);
    let change = |account| {
        let runs = [std::slice::from_ref(&sampled), &[run(&bytes, Some(account))]];
        let comparison = Comparison::new(runs[0], runs[1], &options);
        let changes = comparison.changes.into_iter().filter(|change| change.subject.kind == Kind::Cpu);
        changes.map(|change| (change.base.value.unwrap(), change.new.value.unwrap())).collect::<Vec<_>>()
    };
    let sampled_nanoseconds = std::time::Duration::from_millis(milliseconds).as_secs_f64() * 1e9;
    // A third more than the samples have, in each second.
    let per_second = u128::from(milliseconds) * 4_000_000_000_000_000 / (3 * sampled.duration.as_nanos());
    let per_second = u64::try_from(per_second).unwrap();
    let all = change(per_second);
    assert!((all[0].0 / sampled_nanoseconds - 1.0).abs() < 1e-9, "{all:?}");
    assert!(all.iter().all(|(base, new)| (new / base * 0.75 - 1.0).abs() < 1e-4), "{all:?}");
    // An account of something else changes nothing.
    assert!(change(per_second * 2).iter().all(|(base, new)| (new / base - 1.0).abs() < 1e-12));
    assert_eq!(sampled.queued, None);
    let queued = run(&bytes, Some(1000)).queued.unwrap();
    assert!((queued - 0.5).abs() < 1e-6, "{queued}");
}

/// The rule of all views: CPU time if the kernel sampled running threads, in either order of reading.
#[test]
fn cpu_time_comes_first_where_the_kernel_sampled_it() {
    let bytes = bytes();
    let [samples, milliseconds, ..] = recorded(&bytes);
    let options = || Options::default().with_idle(false).with_kinds(false);
    let first = profile(&bytes, options());
    assert_eq!(
        (first.metric, first.measure, first.total(), first.samples()),
        (Metric::Cpu, Measure::CPU_TIME, milliseconds * 1_000_000, samples)
    );
    let lines = |profile: &Profile| {
        let mut out = Vec::new();
        write(profile, Format::Folded, WriteOptions::default(), &mut out).expect("written");
        String::from_utf8(out).expect("text")
    };
    assert_eq!(lines(&first), lines(&profile(&bytes, Options::new(Metric::Cpu).with_idle(false))));
    // Waits are asked for.
    assert!(profile(&bytes, working(Metric::Wall)).blocked() > 0);
    // Without the kernel's samples it is the time of threads.
    let of_web = files::bytes_of(&files::testdata().join("reference/net9-web.nettrace.xz"));
    assert_eq!(profile(&of_web, options()).metric, Metric::Wall);
}

#[test]
fn time_on_and_off_the_processors_is_that_of_the_events() {
    let bytes = bytes();
    let [samples, milliseconds, off_cpu, preempted] = recorded(&bytes);
    let all = |metric| profile(&bytes, Options::new(metric));
    let cpu = all(Metric::Cpu);
    assert_eq!(
        (cpu.total(), cpu.samples(), cpu.measure),
        (milliseconds * 1_000_000, samples, Measure::CPU_TIME)
    );
    assert_eq!(all(Metric::OffCpu).total(), off_cpu);
    assert_eq!(all(Metric::Wall).total(), milliseconds * 1_000_000 + off_cpu);
    let wall = profile(&bytes, working(Metric::Wall));
    assert_eq!(wall.total() + wall.idle(), milliseconds * 1_000_000 + off_cpu);
    assert_eq!(wall.ready(), preempted);
    // Each thread's spans have its time.
    for (index, thread) in (0..).zip(&wall.threads) {
        let spans: u64 =
            thread.track.iter().flat_map(nettrace_export::Track::iter).map(|span| span.weight).sum();
        let totals = wall.stack_totals.iter().filter(|total| total.thread.0 == index);
        assert_eq!(spans, totals.map(|total| total.weight).sum::<u64>(), "{}", thread.frame);
    }
}

#[test]
fn a_method_lasts_as_long_as_its_program_says() {
    let bytes = bytes();
    let wall = profile(&bytes, working(Metric::Wall));
    // By the workload's clock; a sample stands for 1 ms.
    let spin = inclusive(&wall, "workload!Spin.Hot(");
    assert!(spin.abs_diff(250_000_000) <= 2_500_000, "{spin}");
    let sleep = inclusive(&wall, "!System.Threading.Thread.Sleep(");
    assert!((220_000_000..222_200_000).contains(&sleep), "{sleep}");
    // The sleeping method of the program waited, and the computing one was preempted.
    let name = |frame| wall.frames.full_name(frame).to_owned();
    let wait = blocked_methods(&wall)[0];
    let (method, weight) = (wait.method, wait.weight);
    let called = wait.called.map(name).unwrap_or_default();
    assert!(called.starts_with("System.Private.CoreLib!System.Threading.Thread.Sleep("), "{called}");
    assert_eq!(name(method), "workload!Program.Run(class System.String[])");
    assert!(weight >= sleep, "{weight}");
    let (method, weight) = (ready_methods(&wall)[0].method, ready_methods(&wall)[0].weight);
    assert!(name(method).starts_with("workload!Spin.Fib("), "{}", name(method));
    assert!(weight > 100_000_000, "{weight}");
    // Without blocked time only that on the processors is left.
    let running = profile(&bytes, working(Metric::Wall).with_blocked(false));
    assert_eq!(running.total(), recorded(&bytes)[1] * 1_000_000);
}

/// Every thread leaves a processor in the scheduler, which says nothing of its wait.
#[test]
fn the_leaf_of_a_wait_is_the_function_that_waits() {
    let off_cpu = profile(&bytes(), working(Metric::OffCpu).with_idle_stacks(true));
    let mut leaves = BTreeMap::new();
    for total in &off_cpu.stack_totals {
        let leaf = total.stack.and_then(|stack| off_cpu.stacks.leaf(stack));
        let name = leaf.map_or("", |leaf| off_cpu.frames.full_name(leaf));
        *leaves.entry(name.to_owned()).or_insert(0) += total.weight;
    }
    assert!(!leaves.keys().any(|name| name.starts_with("vmlinux!schedule")), "{leaves:?}");
    let waits: BTreeMap<_, _> =
        blocked_waits(&profile(&bytes(), working(Metric::Wall))).into_iter().collect();
    let blocked = profile(&bytes(), working(Metric::Wall)).blocked();
    assert!(waits.values().sum::<u64>() <= blocked, "{waits:?}");
    // A sleep of .NET is a wait for a condition with a time, and not one for a lock.
    let of = |kind| waits.get(&kind).copied().unwrap_or(0);
    assert!(of(KernelWait::Sleep) >= 220_000_000, "{waits:?}");
    assert!(of(KernelWait::Futex) < 20_000_000, "{waits:?}");
}

#[test]
fn sleeps_are_not_in_the_midst_of_work() {
    let wall = profile(&bytes(), working(Metric::Wall));
    let BlockedTime { in_work, asleep, throughout, .. } = blocked_time(&wall);
    assert!(asleep.weight >= 220_000_000 && in_work.weight < 20_000_000, "{asleep:?} {in_work:?}");
    assert_eq!(asleep.threads, 1);
    let blocked = wall.blocked() - wall.ready();
    assert_eq!(in_work.weight + asleep.weight + throughout.weight, blocked);
}

#[test]
fn rows_of_the_framework_name_the_users_method_that_led_to_them() {
    let wall = profile(&bytes(), working(Metric::Wall));
    let name = |frame| wall.frames.full_name(frame).to_owned();
    let rows = top(&wall);
    let row = |part: &str| rows.iter().find(|row| row.frame.contains(part)).unwrap();
    let caller = row("!System.Threading.Thread.Sleep(").user_caller(true).unwrap();
    assert_eq!(name(caller.frame), "workload!Program.Run(class System.String[])");
    assert!(caller.weight > 200_000_000, "{}", caller.weight);
    assert_eq!(row("workload!Spin.Fib(").user_caller(true), None);
    // A pattern instead of the rule: no method of the workload is the user's then.
    let options = working(Metric::Wall).with_user_code(vec![Pattern::new("CoreLib!*Thread.Sleep")]);
    let wall = profile(&bytes(), options);
    let own: Vec<_> = wall.frames.iter().filter(|(frame, _)| wall.frames.is_user_code(*frame)).collect();
    assert!(!own.is_empty() && own.iter().all(|(_, name)| name.contains("Thread.Sleep")), "{own:?}");
}

#[test]
fn threads_of_the_runtime_and_of_the_pool_wait_for_work() {
    let wall = profile(&bytes(), working(Metric::OffCpu).with_idle_stacks(true));
    let mut idle_threads = Vec::new();
    for (index, thread) in (0..).zip(&wall.threads) {
        let of = |state| {
            let totals =
                wall.stack_totals.iter().filter(|total| total.thread.0 == index && total.state == state);
            totals.map(|total| total.weight).sum::<u64>()
        };
        if of(ThreadState::Idle) > 1_000_000_000 {
            // The main thread reads its commands, and sleeps for 220 ms; the others do nothing else.
            let most = if thread.name.as_deref() == Some("dotnet") { 240_000_000 } else { 20_000_000 };
            assert!(of(ThreadState::Blocked) < most, "{}: {}", thread.frame, of(ThreadState::Blocked));
            idle_threads.push(thread.name.clone().unwrap_or_default());
        }
    }
    for name in [".NET EventPipe", ".NET Finalizer", "dotnet"] {
        assert!(idle_threads.iter().any(|idle| idle == name), "{name}: {idle_threads:?}");
    }
}

#[test]
fn frames_have_the_kind_of_their_file() {
    let wall = profile(&bytes(), Options::new(Metric::Wall));
    let mut seen = BTreeMap::new();
    for (frame, name) in wall.frames.iter() {
        let kind = wall.frames.kind(frame);
        let module = wall.frames.parts(frame).0;
        let expected = match module {
            "" => FrameKind::Pseudo,
            "libclrjit.so" => FrameKind::Code(CodeOrigin::Jit),
            "libcoreclr.so" | "libhostfxr.so" | "libhostpolicy.so" | "libSystem.Native.so" => {
                FrameKind::Code(CodeOrigin::Runtime)
            }
            "vmlinux" => FrameKind::Code(CodeOrigin::Kernel),
            "dotnet" | "ld-linux-x86-64.so.2" | "[vdso]" => FrameKind::Code(CodeOrigin::Native),
            _ if module.starts_with("libc.so") || module.starts_with("libstdc++.so") => {
                FrameKind::Code(CodeOrigin::Native)
            }
            // Stubs: the rundown names all methods.
            _ if module.starts_with("memfd:doublemapper") => FrameKind::Code(CodeOrigin::Runtime),
            _ if name.contains('(') => FrameKind::Code(CodeOrigin::Managed),
            _ => FrameKind::Code(CodeOrigin::Unknown),
        };
        assert_eq!(kind, expected, "{name}");
        *seen.entry(kind).or_insert(0) += 1;
    }
    for origin in
        [CodeOrigin::Managed, CodeOrigin::Jit, CodeOrigin::Runtime, CodeOrigin::Native, CodeOrigin::Kernel]
    {
        assert!(seen.contains_key(&FrameKind::Code(origin)), "{origin:?}: {seen:?}");
    }
    for leaf in [pseudo_frames::MANAGED, pseudo_frames::BLOCKED, pseudo_frames::READY] {
        assert_eq!(
            wall.frames.find(leaf).map(|frame| wall.frames.kind(frame)),
            Some(FrameKind::Pseudo),
            "{leaf}"
        );
    }
}

#[test]
fn every_sample_counts_for_one_kind_of_code() {
    let bytes = bytes();
    let mut collections = Collections::default();
    let reader = nettrace::Reader::new(&bytes[..]).expect("a recording");
    nettrace_export::report::read(reader, |event| collections.add(event)).expect("events");
    let pauses = collections.finish().pause_list;
    let cpu = profile(&bytes, working(Metric::Cpu));
    let by_origin: BTreeMap<_, _> = processor_time(&cpu, &pauses).into_iter().collect();
    assert_eq!(by_origin.values().sum::<u64>(), cpu.total());
    // The collector lacks symbols: its samples are the samples of native code in the six pauses.
    assert!(!processor_time(&cpu, &[]).iter().any(|(origin, _)| *origin == CodeOrigin::Gc));
    assert!(by_origin[&CodeOrigin::Gc] > 0, "{by_origin:?}");
    let compiling: u64 = inclusive(&cpu, "libclrjit.so!");
    assert_eq!(by_origin[&CodeOrigin::Jit], compiling);
}

#[test]
fn formats_with_a_place_for_the_kind_of_a_frame_have_it() {
    let cpu = profile(&bytes(), Options::new(Metric::Cpu));
    let written = |format| {
        let mut out = Vec::new();
        write(&cpu, format, WriteOptions::new("kernel", "tests"), &mut out).expect("memory");
        String::from_utf8(out).expect("text")
    };
    let firefox: serde_json::Value = serde_json::from_str(&written(Format::Firefox)).expect("JSON");
    let categories = firefox["meta"]["categories"].as_array().expect("a list").iter();
    let names: Vec<_> = categories.map(|it| it["name"].as_str().expect("a name").to_owned()).collect();
    for name in ["Managed", "Runtime", "Native", "Kernel"] {
        assert!(names.iter().any(|other| other == name), "{name}: {names:?}");
    }
    // Green for the kernel, purple for the runtime, blue for other native code, red to yellow for the rest.
    let svg = written(Format::Svg);
    let hue = |name: &str| {
        let line = svg.lines().find(|line| line.starts_with("<g>") && line.contains(name)).expect(name);
        let (_, hue) = line.split_once("hsl(").expect("a colour");
        hue.split_once(',').expect("a hue").0.parse::<u32>().expect("a number")
    };
    for (name, hues) in [
        ("vmlinux!", 100..140),
        ("libc.so.6!", 190..230),
        ("libclrjit.so!", 265..305),
        ("workload!Spin.Hot(", 0..60),
    ] {
        assert!(hues.contains(&hue(name)), "{name}: {}", hue(name));
    }
}
