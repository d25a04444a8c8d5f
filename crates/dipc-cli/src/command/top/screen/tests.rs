use std::time::Duration;

use dipc_collect::live::{Counter, InUse, Interval, Omissions, ThreadRow, TypeInUse};
use jiff::civil;
use jiff::tz::TimeZone;
use nettrace_export::report::{AllocationsReport, Collection, GcReport, TypeRow};
use nettrace_export::{FrameId, Metric, Profile, ProfileSum, StackTotal, ThreadIndex};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::*;
use crate::command::top::MethodOrder;
use crate::command::top::session::Features;
use crate::render::list_screen::ListScreen as _;

/// A profile of stacks, root first, with milliseconds.
fn profile(stacks: &[(&[&str], u64)]) -> Profile {
    let mut profile = ProfileSum::new(Metric::Wall, 1 << 16).into_profile();
    for (frames, milliseconds) in stacks {
        let frames: Vec<FrameId> = frames.iter().map(|name| profile.frames.intern(name)).collect();
        let stack = Some(profile.stacks.add(frames));
        let weight = milliseconds * 1_000_000;
        profile.stack_totals.push(StackTotal::new(ThreadIndex(0), stack, weight, *milliseconds));
    }
    profile
}

fn interval(profile: Profile) -> Interval {
    let leaf = profile.stack_totals.first().and_then(|total| profile.stacks.leaf(total.stack?));
    let thread = ThreadRow {
        id: 4711,
        name: String::new(),
        role: "finalizer".into(),
        working: 900_000_000,
        idle: 100_000_000,
        leaf,
        ..ThreadRow::default()
    };
    let mut allocations = AllocationsReport::default();
    let mut row = TypeRow::default();
    (row.csharp, row.bytes, row.samples) = ("byte[]".into(), 2_000_000, 20);
    allocations.types.push(row);
    let mut collections = GcReport::default();
    let mut collection = Collection::default();
    (collection.number, collection.generation, collection.reason) = (7, 2, "Induced".into());
    (collection.pause, collection.after_bytes) = (Some(Duration::from_micros(4_200)), Some(62_500_000));
    collections.collections.push(collection);
    collections.pause_percent = 0.42;
    let mut interval = Interval::new(profile, Duration::from_secs(1));
    let time = civil::date(2026, 11, 21).at(9, 18, 46, 0).to_zoned(TimeZone::system()).unwrap();
    interval.time = time.timestamp().into();
    (interval.threads, interval.allocations, interval.collections) = (vec![thread], allocations, collections);
    let (mut order, mut in_use) = (TypeInUse::default(), InUse::default());
    (order.csharp, order.bytes, order.samples) = ("Order".to_owned(), 1_500_000, 15);
    in_use.types.push(order);
    interval.in_use = Some(in_use);
    interval.counters = vec![(Counter::Cpu, 98.76), (Counter::Heap, 62.5)];
    interval
}

const ALL: Features = Features { samples: true, allocations: true, objects: true, thread_uses: false };

fn process(number: usize) -> WatchedProcess {
    WatchedProcess {
        number,
        name: Some("we\u{1b}[31mb".into()),
        pid: Some(100 + u32::try_from(number).unwrap()),
    }
}

const STACKS: [(&[&str], u64); 3] = [
    (&["app!N.Program.Main()", "app!N.Program.Run()", "app!N.Spin.Hot(int32)"], 600),
    (&["app!N.Program.Main()", "app!N.Timer.Fire()", "app!N.Spin.Hot(int32)"], 100),
    (&["app!N.Program.Main()", "app!N.Program.Run()"], 200),
];

fn model() -> Model {
    let mut model = Model::new(Duration::from_secs(1), MethodOrder::Exclusive);
    model.begin(&process(0), ALL);
    model.add(0, interval(profile(&STACKS)));
    model
}

fn drawn(model: &mut Model, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model)).unwrap();
    let lines = terminal.backend().buffer().content().chunks(usize::from(width));
    lines
        .map(|line| line.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned())
        .collect()
}

fn press(model: &mut Model, keys: &[KeyCode]) {
    for key in keys {
        model.press(KeyEvent::from(*key));
    }
}

/// The lines of the table, with runs of blanks collapsed.
fn rows(lines: &[String]) -> Vec<String> {
    let table = lines.iter().skip(4).take(lines.len() - 5);
    let squeezed = table.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    squeezed.filter(|line| !line.is_empty()).collect()
}

#[test]
fn eighty_columns_are_enough() {
    let lines = drawn(&mut model(), 80, 24);
    assert_eq!(lines[0], r" we\u001b[31mb (100) · every 1 s · 09:18:46");
    assert_eq!(lines[1], " cpu 98.8 % of all processors  heap 62.5 MB");
    assert_eq!(lines[2], " 1 threads: 0.9 work, 0 blocked · 1 collections, paused 0.42% · 0 exceptions");
    assert_eq!(lines[3], " [methods]  threads   allocations   collections   exceptions   in use");
    assert_eq!(
        rows(&lines),
        [
            "SELF TOTAL BLOCKED METHOD",
            "77.8% 700 ms 77.8% 700 ms 0.0% Spin.Hot(int32)",
            "22.2% 200 ms 88.9% 800 ms 0.0% Program.Run()",
            "0.0% 0 ns 100.0% 900 ms 0.0% Program.Main()",
            "0.0% 0 ns 11.1% 100 ms 0.0% Timer.Fire()",
        ]
    );
    assert_eq!(lines[23], " tab view  s sort  / filter  enter callers  w write  q quit  ? help   by self");
    assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
}

#[test]
fn each_view_has_its_rows() {
    let mut model = model();
    for (key, expected) in [
        ('2', "4711 90.0% 0.0% 10.0% finalizer Spin.Hot"),
        ('3', "100.0% 2.00 MB 2.00 MB/s 20 byte[]"),
        ('4', "7 2 4.20 ms 62.5 MB Induced"),
        ('6', "100.0% 1.50 MB 15 Order"),
    ] {
        press(&mut model, &[KeyCode::Char(key)]);
        assert_eq!(rows(&drawn(&mut model, 200, 50))[1], expected);
    }
    press(&mut model, &[KeyCode::Char('5')]);
    assert_eq!(rows(&drawn(&mut model, 200, 50)), ["none in this time"]);
    press(&mut model, &[KeyCode::Tab, KeyCode::Tab]);
    assert!(drawn(&mut model, 200, 50)[3].starts_with(" [methods]"));
}

#[test]
fn callers_are_followed_upwards_and_back() {
    let mut model = model();
    press(&mut model, &[KeyCode::Enter]);
    let lines = drawn(&mut model, 80, 24);
    assert_eq!(lines[3], " callers of Spin.Hot");
    assert_eq!(rows(&lines), ["SHARE CALLER", "85.7% 600 ms Program.Run()", "14.3% 100 ms Timer.Fire()"]);
    // An interval later, the same methods have other frame numbers.
    model.add(0, interval(profile(&[STACKS[2], STACKS[1]])));
    assert_eq!(rows(&drawn(&mut model, 80, 24))[1], "100.0% 100 ms Timer.Fire()");
    press(&mut model, &[KeyCode::Enter, KeyCode::Enter]);
    let lines = drawn(&mut model, 120, 24);
    assert_eq!(lines[3], " callers of Program.Main → Timer.Fire → Spin.Hot");
    assert_eq!(rows(&lines)[1], "100.0% 100 ms (the thread begins here)");
    // There is nothing above it.
    press(&mut model, &[KeyCode::Enter, KeyCode::Esc, KeyCode::Esc, KeyCode::Esc]);
    assert!(drawn(&mut model, 80, 24)[3].starts_with(" [methods]"));
    // All intervals together include the first callers again.
    press(&mut model, &[KeyCode::Home, KeyCode::Char('a')]);
    assert_eq!(rows(&drawn(&mut model, 80, 24))[1], "66.7% 800 ms 66.7% 800 ms 0.0% Spin.Hot(int32)");
    press(&mut model, &[KeyCode::Enter]);
    assert_eq!(rows(&drawn(&mut model, 80, 24))[1], "75.0% 600 ms Program.Run()");
}

#[test]
fn keys_sort_filter_pause_and_quit() {
    let mut model = model();
    press(&mut model, &[KeyCode::Char('s')]);
    let lines = drawn(&mut model, 200, 50);
    assert!(rows(&lines)[1].ends_with("Program.Main()"), "{lines:?}");
    assert!(lines[49].ends_with("by total"), "{}", lines[49]);
    press(&mut model, &[KeyCode::Char('/'), KeyCode::Char('T'), KeyCode::Char('i'), KeyCode::Enter]);
    let lines = drawn(&mut model, 200, 50);
    assert_eq!(rows(&lines)[1..], ["0.0% 0 ns 11.1% 100 ms 0.0% Timer.Fire()"]);
    assert!(lines[49].ends_with("by total · only 'Ti'"), "{}", lines[49]);
    press(&mut model, &[KeyCode::Esc, KeyCode::Char('p')]);
    model.add(0, interval(profile(&STACKS[2..])));
    let lines = drawn(&mut model, 80, 24);
    assert!(lines[0].ends_with("· paused") && rows(&lines).len() == 5, "{lines:?}");
    press(&mut model, &[KeyCode::Char('w')]);
    assert!(model.take_flame_graph_request() && !model.take_flame_graph_request());
    press(&mut model, &[KeyCode::Char('?')]);
    assert!(drawn(&mut model, 80, 24).iter().any(|line| line.contains("write a flame graph")));
    for (width, height) in [(1, 1), (5, 3), (20, 5)] {
        drawn(&mut model, width, height);
    }
    assert!(!model.list.is_done());
    press(&mut model, &[KeyCode::Char('q')]);
    assert!(model.list.is_done());
}

#[test]
fn processes_come_one_after_the_other() {
    let mut model = model();
    model.begin(
        &process(1),
        Features { samples: false, allocations: false, objects: false, thread_uses: false },
    );
    model.end(1);
    press(&mut model, &[KeyCode::Right]);
    let lines = drawn(&mut model, 80, 24);
    assert!(lines[0].contains("(101) (ended), 2 of 2"), "{}", lines[0]);
    assert!(rows(&lines)[0].starts_with("NativeAOT has no sampler"), "{lines:?}");
    press(&mut model, &[KeyCode::Right, KeyCode::Char('3')]);
    assert_eq!(rows(&drawn(&mut model, 80, 24)), ["allocated types are shown with dipc top --alloc"]);
    press(&mut model, &[KeyCode::Left]);
    assert!(drawn(&mut model, 80, 24)[0].contains("(100), 1 of 2"));
}

#[test]
fn hostile_names_and_many_rows_have_a_place() {
    let mut model = Model::new(Duration::from_secs(1), MethodOrder::Exclusive);
    model.begin(&process(0), ALL);
    let names: Vec<String> = (0..5000)
        .map(|number| format!("m\u{1b}]0;x\u{7}!N.T\u{202e}.M{number}({})\r\n", "u".repeat(100)))
        .collect();
    let stacks: Vec<([&str; 1], u64)> = (1..).zip(&names).map(|(weight, name)| ([&**name], weight)).collect();
    let stacks: Vec<(&[&str], u64)> = stacks.iter().map(|(frames, weight)| (&frames[..], *weight)).collect();
    let mut hostile = interval(profile(&stacks));
    hostile.allocations.types[0].csharp = "T\u{1b}[2J".into();
    hostile.omissions = Omissions { lost: 5, samples: 6, frames: 7, unnamed: 0 };
    model.add(0, hostile);
    for key in ['1', '2', '3', '4', '5'] {
        press(&mut model, &[KeyCode::Char(key), KeyCode::End, KeyCode::Enter]);
        for (width, height) in [(80, 24), (200, 50), (3, 2)] {
            let lines = drawn(&mut model, width, height);
            let is_hostile = |character: char| character.is_control() || character == '\u{202e}';
            assert!(!lines.iter().any(|line| line.chars().any(is_hostile)), "{lines:?}");
        }
    }
    let lines = drawn(&mut model, 200, 50);
    assert!(lines[2].ends_with("missing: 5 events lost, 6 samples and 7 frames too many"), "{}", lines[2]);
    // A table ends at 1000 rows, and a filter finds the others.
    press(&mut model, &[KeyCode::Char('1'), KeyCode::End]);
    assert!(rows(&drawn(&mut model, 200, 50)).last().unwrap().contains("M4000("));
    press(&mut model, &[KeyCode::Char('/'), KeyCode::Char('M'), KeyCode::Char('1'), KeyCode::Char('7')]);
    press(&mut model, &[KeyCode::Char('('), KeyCode::Enter]);
    assert_eq!(rows(&drawn(&mut model, 200, 50)).len(), 2);
}

/// Each of two would have half of the time.
#[test]
fn a_few_samples_give_no_shares() {
    let mut model = Model::new(Duration::from_secs(1), MethodOrder::Exclusive);
    model.begin(&process(0), ALL);
    model.add(0, interval(profile(&[(&["app!A.One()"], 3), (&["app!B.Two()"], 1)])));
    assert_eq!(
        rows(&drawn(&mut model, 120, 24)),
        [
            "SELF TOTAL BLOCKED METHOD (too few samples for shares)",
            "- 3.00 ms - 3.00 ms - app!A.One()",
            "- 1.00 ms - 1.00 ms - app!B.Two()",
        ]
    );
}

/// Waiting threads are missing from the kernel's samples, but not from its account.
#[test]
fn threads_by_the_kernels_account_run_are_runnable_or_wait() {
    let mut model = Model::new(Duration::from_secs(1), MethodOrder::Exclusive);
    model.begin(
        &process(0),
        Features { samples: true, allocations: false, objects: false, thread_uses: true },
    );
    let mut interval = interval(profile(&STACKS));
    interval.threads[0] =
        ThreadRow { runnable: 40_000_000, waited: 60_000_000, idle: 0, ..interval.threads[0].clone() };
    let waiting =
        ThreadRow { id: 4712, name: ".NET SigHandler".into(), waited: 1_000_000_000, ..ThreadRow::default() };
    interval.threads.push(waiting);
    model.add(0, interval);
    press(&mut model, &[KeyCode::Char('2')]);
    let lines = drawn(&mut model, 100, 24);
    // From the interval itself, as for the threads below: the counter covers all processors and another time.
    assert!(lines[1].starts_with(" cpu 90.0%") && !lines[1].contains("98.8"), "{}", lines[1]);
    assert_eq!(
        lines[2],
        " 2 threads: 0.9 on CPU, 0.04 runnable, 1.06 wait · 1 collections, paused 0.42% · 0 exceptions"
    );
    assert_eq!(
        rows(&lines),
        [
            "THREAD ON CPU RUNNABLE WAITS NAME, MOSTLY IN (100% is one core)",
            "4711 90.0% 4.0% 6.0% finalizer Spin.Hot",
            "4712 0.0% 0.0% 100.0% .NET SigHandler",
        ]
    );
}
