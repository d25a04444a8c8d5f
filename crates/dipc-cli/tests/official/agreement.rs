//! Every recording at hand through `dipc edit`, `merge` and `repair`: the events that Microsoft's library
//! finds in the results, and the profiles that dotnet-trace makes of them, are those of the recording itself.
//!
//! `cargo test -p dipc-cli --test official agreement -- --nocapture` prints a row for each recording.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use crate::clients::{self, Clients};
use crate::testdata;

/// The ways in which a recording is written again: a heading, and the arguments; `IN` is the recording.
const WAYS: [(&str, &[&str]); 5] = [
    ("edit", &["edit", "IN"]),
    ("edit to 4", &["edit", "IN", "--upgrade", "4"]),
    ("edit to 6", &["edit", "IN", "--upgrade", "6"]),
    ("merge, twice", &["merge", "IN", "IN"]),
    ("repair", &["repair", "IN"]),
];

/// Known differences, each with its reason. The table has their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    /// Of netperf the library takes the related activity from where newer versions have it, so that it shows
    /// pieces of the payload or of a stack, or none.
    RelatedActivity = 1,
    /// Before V6 a time has eight bytes, and V6 has no type for these: they are described as a number.
    Date = 2,
    /// A thread of V6 of which only its index is known has that for its number afterwards.
    ThreadNumber = 3,
    /// A merge gives the mapped files of each recording numbers of their own.
    MappingNumber = 4,
    /// The library shows events behind later ones where threads stand in blocks of their own, and of the same
    /// time as it meets them. In the result they are in the order of time.
    Order = 5,
    /// The library reads the fields of an event that it knows by heart also behind the end of a payload
    /// without any bytes.
    NoPayload = 6,
}

/// Events of a recording of which a profile is made.
const FEW: u64 = 50;

/// The library's view of a recording: its events in time order, and the number of lost ones; `None` if it
/// throws.
type Dump = Option<(Vec<Value>, i64)>;

#[test]
fn every_recording_of_the_repository_agrees() {
    let folders = ["traces", "counters", "gcdump/recordings", "reference", "stacks", "workload/lines"];
    let folders: Vec<_> = folders.iter().map(|name| testdata().join(name)).collect();
    assert!(check_all(&folders) >= Some(28) || Clients::find().is_none());
}

#[test]
fn every_recording_of_the_larger_collection_agrees() {
    let Some(shared) = clients::shared() else { return };
    // The clients take some minutes for it.
    if std::env::var_os("DIPC_ALL_RECORDINGS").is_none() {
        return println!("not run: DIPC_ALL_RECORDINGS=1 compares the larger collection, too");
    }
    let third_party = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(shared.join("traces/third-party")).unwrap() {
        unpack(&entry.unwrap().path(), third_party.path());
    }
    let folders = [shared.join("traces/real"), third_party.path().to_owned()];
    assert!(check_all(&folders) >= Some(20) || Clients::find().is_none());
}

/// Unpacks an archive; says so where the program for it is missing.
fn unpack(archive: &Path, folder: &Path) {
    let is_zip = archive.extension().is_some_and(|extension| extension == "zip");
    let mut command = Command::new(if is_zip { "unzip" } else { "tar" });
    if is_zip {
        command.arg("-q").arg(archive).arg("-d").arg(folder);
    } else {
        command.arg("-xf").arg(archive).arg("-C").arg(folder);
    }
    match command.status() {
        Ok(status) => assert!(status.success(), "{command:?}"),
        Err(error) => println!("not run: {command:?}: {error}"),
    }
}

/// Checks the recordings in these folders, and prints a table. Returns their number; `None` where the clients
/// are missing.
fn check_all(folders: &[PathBuf]) -> Option<usize> {
    let clients = Clients::find()?;
    let mut recordings = Vec::new();
    for folder in folders {
        find(folder, &mut recordings);
    }
    recordings.sort();
    let headings: Vec<_> = WAYS.iter().map(|way| way.0).collect();
    let mut table = format!("| recording | version | events | lost | {} |\n", headings.join(" | "));
    let _ = writeln!(table, "|---|---|---|---|{}", "---|".repeat(WAYS.len()));
    let mut failures = String::new();
    for (row, differences) in on_all_processors(&recordings, |recording| check(&clients, recording)) {
        table.push_str(&row);
        failures.push_str(&differences);
    }
    print!("{table}");
    assert!(failures.is_empty(), "{failures}");
    Some(recordings.len())
}

/// Returns the results of some work for each item, in the order of the items. As many are done at once as
/// there are processors.
fn on_all_processors<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let indices = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let mine = indices.map_while(|index| items.get(index).map(|item| (index, work(item))));
        mine.collect::<Vec<_>>()
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let mut results: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(worker)).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        workers.into_iter().flat_map(join).collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Adds the recordings below a folder.
fn find(folder: &Path, recordings: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy();
        let name = name.strip_suffix(".xz").unwrap_or(&name);
        if path.is_dir() {
            find(&path, recordings);
        } else if name.ends_with(".nettrace") || name.ends_with(".netperf") {
            recordings.push(path);
        }
    }
}

/// Writes a recording again in every way. Returns a row of what the clients find in the results, and what
/// differs; both are empty for a recording of a version that nothing reads.
fn check(clients: &Clients, recording: &Path) -> (String, String) {
    let (mut table, mut failures) = (String::new(), String::new());
    let folder = tempfile::tempdir().unwrap();
    let (whole, written) = (folder.path().join("in.nettrace"), folder.path().join("out.nettrace"));
    let bytes = fs::read(recording).unwrap();
    let is_packed = recording.extension().is_some_and(|extension| extension == "xz");
    fs::write(&whole, if is_packed { clients::unpacked(&bytes) } else { bytes }).unwrap();
    let name = recording.file_stem().unwrap().to_string_lossy();
    let stat = match dipc(folder.path(), &["stat", "in.nettrace", "--format", "json"]) {
        Ok(stat) => stat,
        Err(error) => {
            assert!(
                error.contains("is newer than this reader") && dump(clients, &whole).is_none(),
                "{error}"
            );
            return (table, failures);
        }
    };
    let stat: Value = serde_json::from_str(&stat).unwrap();
    let (version, events) = (stat["version"].as_u64().unwrap(), stat["events"].as_u64().unwrap());
    let expected = dump(clients, &whole);
    // A recording of a few events makes a profile of nothing.
    let profile_of = |path: &Path| if events >= FEW { clients.speedscope(path) } else { None };
    let profile = profile_of(&whole);
    let _ = write!(table, "| {name} | {version} | {events} | {} |", stat["lost"]);
    // The written recording, and how it compares: several ways write the same.
    let mut results: Vec<(Vec<u8>, Result<String, String>)> = Vec::new();
    for (heading, arguments) in WAYS {
        let times = arguments.iter().filter(|it| **it == "IN").count();
        if heading == "edit to 4" && version == 6 {
            table.push_str(" |");
            continue;
        }
        let arguments: Vec<_> =
            arguments.iter().map(|it| if *it == "IN" { "in.nettrace" } else { it }).collect();
        let arguments = [&arguments[..], &["-o", "out.nettrace"]].concat();
        let outcome = match dipc(folder.path(), &arguments) {
            Ok(_) => {
                let bytes = fs::read(&written).unwrap();
                let is_v6 = bytes.starts_with(b"Nettrace\0\0\0\0");
                let known = results.iter().find(|(other, _)| *other == bytes);
                if let Some((_, outcome)) = known {
                    outcome.clone()
                } else {
                    let lost = stat["lost"].as_i64().unwrap();
                    let expectation =
                        Expectation { dump: expected.as_ref(), events, lost, version, is_v6, times };
                    let outcome = compare(&expectation, dump(clients, &written)).and_then(|outcome| {
                        compare_profiles(outcome, profile.as_ref(), profile_of(&written))
                    });
                    results.push((bytes, outcome.clone()));
                    outcome
                }
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(outcome) => _ = write!(table, " {outcome} |"),
            Err(difference) => {
                table.push_str(" DIFFERS |");
                let _ = writeln!(failures, "{name}: {heading}: {difference}");
            }
        }
    }
    table.push('\n');
    (table, failures)
}

/// Runs `dipc`, which must end with 0, or with 6 where the recording is damaged, and returns what it prints.
fn dipc(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    match output.status.code() {
        Some(0 | 6) => Ok(String::from_utf8(output.stdout).unwrap()),
        code => Err(format!("{code:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// The expected content of a written recording.
struct Expectation<'a> {
    /// What the library says of the recording itself.
    dump: Option<&'a (Vec<Value>, i64)>,
    /// The events and losses that our own reader finds in it.
    events: u64,
    lost: i64,
    version: u64,
    /// True if the result is of version 6.
    is_v6: bool,
    /// How often the recording was given: a merge has its events once, and its losses each time.
    times: usize,
}

fn dump(clients: &Clients, recording: &Path) -> Dump {
    let (lines, lost) = clients.try_dump(recording)?;
    let events = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Some((events, lost))
}

/// Compares the events of a recording with the events that the library finds in the written one.
fn compare(expectation: &Expectation<'_>, found: Dump) -> Result<String, String> {
    let Some((mut found, found_lost)) = found else { return Err("the library throws".to_owned()) };
    let said = expectation.lost * i64::try_from(expectation.times).unwrap();
    let Some((expected, expected_lost)) = expectation.dump else {
        // The library cannot read the recording itself, or not all of it.
        return if (found.len() as u64, found_lost) == (expectation.events, said) {
            Ok("all events".to_owned())
        } else {
            let (events, lost) = (expectation.events, expectation.lost);
            Err(format!("{} events and {found_lost} lost, not {events} and {lost}", found.len()))
        };
    };
    // In version 6 the library counts what every thread has lost; in version 4 not what threads without any
    // event have.
    if found_lost != if expectation.is_v6 { said } else { *expected_lost } {
        return Err(format!("{found_lost} lost events, not {expected_lost}"));
    }
    if expected.len() != found.len() {
        return Err(format!("{} events, not {}", found.len(), expected.len()));
    }
    let mut differences = BTreeSet::new();
    let mut expected: Vec<_> = expected.iter().collect();
    if expected.iter().zip(&found).any(|(expected, found)| key(expected) != key(found)) {
        let times = found.iter().map(|event| event["time_ms"].as_f64().unwrap());
        if !times.is_sorted() {
            return Err("another order, which is not that of time".to_owned());
        }
        differences.insert(Difference::Order);
        expected.sort_by_cached_key(|event| key(event));
        found.sort_by_cached_key(key);
    }
    for (one, other) in expected.iter().zip(&found) {
        let more =
            known_differences(one, other, expectation).ok_or_else(|| format!("\n- {one}\n+ {other}"))?;
        differences.extend(more);
    }
    let numbers: Vec<_> = differences.iter().map(|it| (*it as u8).to_string()).collect();
    Ok(if numbers.is_empty() { "equal".to_owned() } else { format!("equal ({})", numbers.join(", ")) })
}

/// The place of an event among others, by what no known difference touches.
fn key(event: &Value) -> String {
    let content = if event["provider"] == MACHINE {
        let fields = event["fields"].as_object().unwrap().iter();
        let fields = fields.filter(|(name, _)| !name.ends_with("Id"));
        fields.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    } else {
        event["payload_sha256"].to_string()
    };
    let time = event["time_ms"].as_f64().unwrap();
    format!("{time:020.6} {} {} {content} {:>10}", event["provider"], event["id"], event["tid"].to_string())
}

/// The provider whose events have numbers of mapped files.
const MACHINE: &str = "Universal.System";

/// Compares the profiles that dotnet-trace makes of a recording and of the written one.
fn compare_profiles(
    events: String,
    expected: Option<&Value>,
    found: Option<Value>,
) -> Result<String, String> {
    match (expected, found) {
        (Some(expected), Some(found)) if *expected == found => Ok(format!("{events}, profile")),
        (Some(_), Some(_)) => Err(format!("{events}, another profile")),
        (Some(_), None) => Err(format!("{events}, no profile")),
        (None, Some(_)) => Ok(format!("{events}, profile now")),
        // There is none of the recording either.
        (None, None) => Ok(events),
    }
}

/// The known differences between two events; `None` if there are others.
fn known_differences(
    expected: &Value,
    found: &Value,
    expectation: &Expectation<'_>,
) -> Option<Vec<Difference>> {
    if expected == found {
        return Some(Vec::new());
    }
    let mut known = Vec::new();
    let mut pair = [expected.clone(), found.clone()];
    if expected.get("related") != found.get("related") && expectation.version < 4 {
        known.push(Difference::RelatedActivity);
        remove(&mut pair, &["related"]);
    }
    if expected["tid"] == -1 && expectation.version == 6 {
        known.push(Difference::ThreadNumber);
        remove(&mut pair, &["tid"]);
    }
    if expected["provider"] == MACHINE && expectation.times > 1 {
        known.push(Difference::MappingNumber);
        remove(&mut pair, &["payload_sha256", "payload_len"]);
        for event in &mut pair {
            event["fields"].as_object_mut()?.retain(|name, _| !name.ends_with("Id"));
        }
    }
    if expected["payload_len"] == 0 && expected["fields"] != found["fields"] {
        known.push(Difference::NoPayload);
        remove(&mut pair, &["fields"]);
        return (pair[0] == pair[1]).then_some(known);
    }
    let [one, other] = &mut pair;
    let others = other["fields"].as_object_mut()?;
    for (name, value) in one["fields"].as_object()? {
        let number = others.get_mut(name)?;
        if value != number
            && let Some(date) = number.as_str().and_then(|text| text.parse().ok()).map(date)
        {
            known.push(Difference::Date);
            *number = Value::String(date);
        }
    }
    (one == other).then_some(known)
}

fn remove(events: &mut [Value; 2], members: &[&str]) {
    for event in events {
        event.as_object_mut().unwrap().retain(|name, _| !members.contains(&name.as_str()));
    }
}

/// The date of a `FILETIME`, as the library shows it: `01/02/2026 03:04:05`.
fn date(ticks: i64) -> String {
    const EPOCH_S: i64 = 11_644_473_600;
    let time = jiff::Timestamp::from_second(ticks / 10_000_000 - EPOCH_S).unwrap();
    time.strftime("%m/%d/%Y %H:%M:%S").to_string()
}
