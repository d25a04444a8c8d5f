//! `dipc monitor` as a process, when things around it fail: kills, a full disk, a collector that is away,
//! stopped and hostile targets, and files that change.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dipc_client::Uuid;
use dipc_sim::{Builder, Fault, Runtime as Simulated, Speed};
use dipc_wire::PortConfig;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::monitor::{await_that, get};
use crate::program::{Running, dipc};
use crate::runtime::Runtime;
use crate::workload::Workload;

/// A monitor of the runtimes at a port of its own, with its files in a folder.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn port(&self) -> PortConfig {
        PortConfig::new(self.text("port")).unwrap()
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes the configuration, with more sections.
    fn configure(&self, artifacts: &Path, more: &Value) {
        let mut configuration = json!({
            "DiagnosticPort": {"ConnectionMode": "Listen", "EndpointName": self.path("port")},
            "Egress": {"FileSystem": {"files": {"DirectoryPath": artifacts}}},
            "Metrics": {"Enabled": false},
        });
        for (key, value) in more.as_object().unwrap() {
            configuration[key] = value.clone();
        }
        fs::write(self.path("configuration.json"), configuration.to_string()).unwrap();
    }

    /// The arguments of a monitor with the configuration, in a shell or without one.
    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let urls = format!("unix:{}", self.path("http").display());
        let (file, queue) = (self.text("configuration.json"), self.text("queue"));
        let bundles = self.text("bundles");
        let usual = [
            "monitor",
            "--urls",
            &urls,
            "--configuration-file-path",
            &file,
            "--queue",
            &queue,
            "--bundles",
            &bundles,
        ];
        usual.iter().chain(more).map(|argument| (*argument).to_owned()).collect()
    }

    fn start(&self, more: &[&str]) -> Running {
        let running = Running::start(dipc(self.arguments(more).iter().map(String::as_str)));
        self.await_answer();
        running
    }

    fn await_answer(&self) {
        await_that("it answers", || self.get("/health").is_some());
    }

    /// Connects a runtime, and waits until it is watched.
    fn connect(&self, builder: Builder) -> Simulated {
        let runtime = builder.connect(&self.port()).unwrap();
        let uid = runtime.identity().runtime_cookie.to_string();
        await_that("the runtime is watched", || {
            let list = self.get("/processes").unwrap_or_default();
            list.as_array().is_some_and(|list| list.iter().any(|process| process["uid"] == *uid))
        });
        runtime
    }

    fn get(&self, path: &str) -> Option<Value> {
        let answer = get(&self.path("http"), path)?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Requests an artifact. Returns the path of its operation, if it was promised.
    fn request(&self, path: &str) -> Option<String> {
        let answer = get(&self.path("http"), path)?;
        let location = answer.lines().find_map(|line| line.strip_prefix("location: "))?;
        answer
            .starts_with("HTTP/1.1 202 ")
            .then(|| location[location.find("/operations/").unwrap()..].to_owned())
    }

    fn queued(&self) -> Option<u64> {
        self.get("/health")?["queuedArtifacts"].as_u64()
    }
}

/// The files of a directory without the monitor's own list of its recordings.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != ".dipc-recordings").collect();
    names.sort();
    names
}

fn recording() -> Vec<u8> {
    testdata::bytes("traces/net10-sample.nettrace.xz")
}

fn replayed() -> Builder {
    Simulated::builder().replay(recording()).speed(Speed::Max).end_with_recording()
}

/// Whatever was promised is there in the end, whole, once, although every monitor but the last is killed.
#[test]
fn promised_artifacts_survive_kills_of_the_monitor() {
    const ROUNDS: u32 = 8;
    let place = Place::new();
    let artifacts = place.path("artifacts");
    place.configure(&artifacts, &json!({}));
    let mut running = place.start(&[]);
    let _runtime = place.connect(replayed());
    let (mut promised, mut asked) = (0, 0);
    for round in 0..ROUNDS {
        // From before the first request to after the last artifact.
        let end = Instant::now() + Duration::from_millis(90) * round;
        while Instant::now() < end {
            asked += 1;
            // At most three run at once.
            if place.request("/trace?durationSeconds=-1&egressProvider=files").is_some() {
                promised += 1;
            }
        }
        running.signal(Signal::KILL);
        running.finish();
        // One that was killed leaves its sockets.
        running = place.start(&[]);
    }
    // On a slow machine the first that is promised.
    await_that("one is promised to the last monitor", || {
        asked += 1;
        place.request("/trace?durationSeconds=-1&egressProvider=files").is_some()
    });
    promised += 1;
    await_that("all have arrived", || place.queued() == Some(0));
    running.signal(Signal::INT);
    running.finish().with_code(0);
    let arrived = names(&artifacts);
    assert!(arrived.len() >= promised && arrived.len() <= asked, "{promised} of {asked}: {arrived:?}");
    for name in &arrived {
        assert!(!name.starts_with('.'), "a part is left: {arrived:?}");
        assert_eq!(fs::read(artifacts.join(name)).unwrap(), recording(), "{name}");
    }
    assert_eq!(
        (names(&place.path("queue")), names(&place.path("queue/uploads"))),
        (vec!["lock".to_owned()], vec![])
    );
}

/// A disk that is full takes the artifact as soon as it has room.
#[test]
fn an_artifact_waits_for_room_on_a_full_disk() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: a small disk needs root");
        return;
    }
    let place = Place::new();
    let small = place.path("small");
    fs::create_dir(&small).unwrap();
    place.configure(&small, &json!({}));
    // The disk is in the monitor's mount namespace, and disappears with it.
    let mut command = std::process::Command::new("unshare");
    let script = format!("mount -t tmpfs -o size=64k none {} && exec \"$@\"", small.display());
    let program = dipc([]).get_program().to_owned();
    command.args(["--mount", "sh", "-c", &script, "sh"]).arg(program).args(place.arguments(&[]));
    command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let running = Running::start(command);
    place.await_answer();
    let _runtime = place.connect(replayed());
    let path = place.request("/trace?durationSeconds=-1&egressProvider=files").unwrap();
    await_that("the failure is stated", || {
        let operation = place.get(&path).unwrap();
        let error = operation["error"]["message"].as_str().unwrap_or_default();
        operation["status"] == "Running" && error.contains("No space left")
    });
    // Files written there do not interfere with others.
    let seen = Path::new("/proc")
        .join(running.pid().to_string())
        .join("root")
        .join(small.strip_prefix("/").unwrap());
    await_that("nothing is left of the attempt", || names(&seen).is_empty());
    let remount = ["--mount", "--target", &running.pid().to_string(), "mount", "-o", "remount,size=8m"]
        .map(str::to_owned);
    let status = std::process::Command::new("nsenter").args(remount).arg(&small).status().unwrap();
    assert!(status.success());
    await_that("it has arrived", || place.get(&path).unwrap()["status"] == "Succeeded");
    let arrived = names(&seen);
    assert_eq!((arrived.len(), fs::read(seen.join(&arrived[0])).unwrap()), (1, recording()));
    running.signal(Signal::INT);
    running.finish().with_code(0);
}

/// The time that passes is what is tested: a stopped process answers nothing.
#[test]
fn a_stopped_process_does_not_hold_up_the_end() {
    let Some(target) = Workload::start(Runtime::NativeAot9) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (filter, urls) = (format!("ProcessId={}", target.pid()), format!("unix:{}", path("http")));
    let bundles = path("bundles");
    let before = target.sockets();
    let arguments = ["monitor", "--urls", &urls, "--metricUrls", "http://127.0.0.1:0", "--filter", &filter];
    let mut running = Running::start(dipc(arguments.into_iter().chain(["--bundles", &bundles])));
    let health = || {
        let answer = get(&folder.path().join("http"), "/health")?;
        serde_json::from_str::<Value>(answer.split_once("\r\n\r\n")?.1).ok()
    };
    await_that("its sessions run", || {
        health().is_some_and(|it| it["counters"]["sessions"] == 1 && it["blackBoxes"]["sessions"] == 1)
    });
    target.halt();
    running.signal(Signal::TERM);
    running.until_said("Cannot answer  : process ");
    // It is stopped until then.
    let finished = running.finish().with_code(0);
    assert!(
        finished.stderr.contains("is stopped by a signal; its sessions end when it continues"),
        "{}",
        finished.stderr
    );
    target.signal(Signal::CONT);
    await_that("its sessions have ended", || target.sockets() == before);
}

#[test]
fn hostile_runtimes_do_not_disturb_the_others() {
    let place = Place::new();
    place.configure(&place.path("artifacts"), &json!({}));
    let running = place.start(&["--keep", "5s", "--metrics", "true", "--metricUrls", "http://127.0.0.1:0"]);
    let faults = [
        Fault::NeverAnswer,
        Fault::AnswerLate(Duration::from_secs(1)),
        Fault::WrongMagic,
        Fault::WrongSize,
        Fault::Oversize,
        Fault::CloseAfterHeader,
        Fault::CloseInStream { after: 100 },
        Fault::DamageInStream { after: 1000 },
        Fault::OneByteAtATime,
        Fault::NeverStop,
        Fault::StopReplyBeforeStreamEnd,
        Fault::Flood,
    ];
    let hostile: Vec<_> = (1..)
        .zip(faults)
        .map(|(number, fault)| {
            let builder = Simulated::builder().cookie(Uuid::from_u128(number)).fault(fault);
            builder.connect(&place.port()).unwrap()
        })
        .collect();
    // Something that is not a runtime.
    let mut stranger = UnixStream::connect(place.path("port")).unwrap();
    stranger.write_all(&[0xff; 5000]).unwrap();
    let _runtime = place.connect(replayed().cookie(Uuid::from_u128(1000)));
    let uid = Uuid::from_u128(1000);
    let path = place.request(&format!("/trace?uid={uid}&durationSeconds=-1&egressProvider=files")).unwrap();
    await_that("its artifact has arrived", || place.get(&path).unwrap()["status"] == "Succeeded");
    let arrived = names(&place.path("artifacts"));
    assert_eq!(fs::read(place.path("artifacts").join(&arrived[0])).unwrap(), recording());
    running.signal(Signal::TERM);
    let finished = running.finish().with_code(0);
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
    drop(hostile);
}

/// Files that change apply at SIGHUP: tokens, and what of the configuration does not need a restart.
#[test]
fn changed_tokens_and_settings_apply_at_a_request() {
    let place = Place::new();
    place.configure(&place.path("artifacts"), &json!({}));
    let tokens = place.path("tokens");
    fs::write(&tokens, "read,metrics the-first-token-of-all\n").unwrap();
    let mut running = place.start_with_tokens(&tokens, "the-first-token-of-all");
    fs::write(&tokens, "read the-second-token-of-all\n").unwrap();
    running.signal(Signal::HUP);
    running.until_said("The tokens were read again");
    let status = |token: &str| place.status("/processes", token);
    assert_eq!((status("the-first-token-of-all"), status("the-second-token-of-all")), (401, 200));
    // Without tokens everyone could do everything.
    fs::write(&tokens, "# none\n").unwrap();
    running.signal(Signal::HUP);
    running.until_said("it has no tokens");
    running.until_said("the tokens stay as they were until the file can be used");
    assert_eq!((status("the-second-token-of-all"), status("")), (200, 401));
    running.until_said("The configuration was read again: 0 rules; all of it applies");
    place.configure(
        &place.path("artifacts"),
        &json!({
            "DefaultProcess": {"Filters": [{"Key": "ProcessId", "Value": "7"}]},
            "Storage": {"DumpTempFolder": place.path("dumps")},
            "Metrics": {"Enabled": false, "Endpoints": "http://127.0.0.1:1"},
        }),
    );
    running.signal(Signal::HUP);
    running.until_said("0 rules; after a restart: Storage, Metrics:Endpoints");
    running.signal(Signal::TERM);
    running.finish().with_code(0);
}

#[test]
fn a_changed_interval_of_counters_applies_without_a_restart() {
    let place = Place::new();
    let configure = |seconds: u32, process: &str| {
        let filter = json!({"Key": "ProcessName", "Value": process, "MatchType": "Exact"});
        place.configure(
            &place.path("artifacts"),
            &json!({
                "Metrics": {"Enabled": true},
                "GlobalCounter": {"IntervalSeconds": seconds},
                "DefaultProcess": {"Filters": [filter]},
            }),
        );
    };
    configure(1, "nosuch");
    let mut running = place.start(&["--keep", "0s", "--metricUrls", "http://127.0.0.1:0"]);
    let runtime = place.connect(Simulated::builder().rate(100));
    let is_asked = |seconds: u32| {
        let wanted = format!("EventCounterIntervalSec={seconds}");
        runtime.requests().iter().any(|request| format!("{request:?}").contains(&wanted))
    };
    await_that("the session of the first interval", || is_asked(1));
    let uid = runtime.identity().runtime_cookie.to_string();
    let name = place.get(&format!("/process?uid={uid}")).unwrap()["name"].as_str().unwrap().to_owned();
    assert_eq!(place.get("/process").unwrap()["status"], 400);
    configure(3, &name);
    running.signal(Signal::HUP);
    running.until_said("0 rules; all of it applies");
    await_that("the session of the other interval", || is_asked(3));
    assert_eq!(place.get("/process").unwrap()["uid"], *uid);
    running.signal(Signal::TERM);
    running.finish().with_code(0);
}

impl Place {
    fn start_with_tokens(&self, file: &Path, token: &str) -> Running {
        let arguments = self.arguments(&["--token-file", file.to_str().unwrap()]);
        let running = Running::start(dipc(arguments.iter().map(String::as_str)));
        await_that("it answers", || self.status("/processes", token) == 200);
        running
    }

    /// The status of an answer to a request with a token; 0 while there is none.
    fn status(&self, path: &str, token: &str) -> u16 {
        let answer =
            crate::monitor::get_with(&self.path("http"), path, &format!("Authorization: Bearer {token}\r\n"));
        answer.and_then(|answer| answer.split(' ').nth(1)?.parse().ok()).unwrap_or(0)
    }
}
