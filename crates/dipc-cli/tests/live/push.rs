//! `dipc push`: profiles as servers receive them, read by the rules of their protocols or official messages,
//! and by nothing of the program's.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Link, Location, Mapping, ProfilesDictionary, Stack,
};
use prost::Message as _;

use crate::bad_files::recording;
use crate::program::run;
use crate::runtime::{Runtime, on_runtimes, say_not_run};
use crate::workload::Workload;

/// A request's head and body.
type Request = (String, Vec<u8>);

/// Starts a server that refuses the first request for now, and takes all others.
fn server() -> (SocketAddr, Receiver<Request>) {
    server_with("503 Service Unavailable\r\nRetry-After: 0", &[])
}

/// Starts a server that gives this answer to the first request, with this body, and takes all others.
fn server_with(answer: &'static str, body: &'static [u8]) -> (SocketAddr, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the test.
    thread::spawn(move || {
        let mut answer = (answer, body);
        for stream in listener.incoming() {
            take(&stream.unwrap(), answer, &sender);
            answer = ("200 OK", &[]);
        }
    });
    (address, receiver)
}

fn take(mut stream: &TcpStream, (answer, content): (&str, &[u8]), requests: &Sender<Request>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "a head that ends: {head}");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    // The test may be over.
    let _ = requests.send((head, body));
    write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: {}\r\n\r\n", content.len()).unwrap();
    stream.write_all(content).unwrap();
}

/// The values of a length-delimited field of a protobuf message.
fn fields(mut message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = number(&mut message);
        match tag & 7 {
            0 => _ = number(&mut message),
            2 => {
                let length = usize::try_from(number(&mut message)).unwrap();
                let (value, rest) = message.split_at(length);
                if tag >> 3 == wanted {
                    found.push(value);
                }
                message = rest;
            }
            other => panic!("wire type {other}"),
        }
    }
    found
}

fn number(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = message.split_first().expect("a number");
        *message = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Labels and gzipped profile of a request to Pyroscope.
fn of_pyroscope(body: &[u8]) -> (Vec<(String, String)>, Vec<u8>) {
    let series = fields(body, 1);
    assert_eq!(series.len(), 1);
    let label = |pair: &&[u8]| (text(fields(pair, 1)[0]), text(fields(pair, 2)[0]));
    let labels = fields(series[0], 1).iter().map(label).collect();
    let samples = fields(series[0], 2);
    assert_eq!(samples.len(), 1);
    (labels, fields(samples[0], 1)[0].to_vec())
}

/// The strings of a gzipped pprof profile: names of methods among them.
fn texts(pprof: &[u8]) -> Vec<String> {
    let mut message = Vec::new();
    flate2::read::GzDecoder::new(pprof).read_to_end(&mut message).unwrap();
    let period_type = fields(&message, 11);
    assert_eq!(period_type.len(), 1, "Pyroscope needs the type of a period");
    fields(&message, 6).into_iter().map(text).collect()
}

#[test]
fn pushed_profiles_match_convert() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let file = path("shop.nettrace");
    std::fs::write(&file, recording("net10-sample.nettrace.xz")).unwrap();
    let converted = path("shop.pb.gz");
    run(["convert", &file, "-f", "pprof", "-o", &converted]).with_code(0);
    let expected = std::fs::read(converted).unwrap();

    let (address, requests) = server();
    let url = format!("http://{address}");
    let arguments = ["push", &file, "--label", "version=1.4", "--header", "X-Scope-OrgID=us"];
    run(arguments.into_iter().chain(["--pyroscope", &url])).with_code(0);
    let refused = requests.recv().unwrap();
    let (head, body) = requests.recv().unwrap();
    assert_eq!(refused.1, body, "what was refused for now is sent again");
    assert!(head.starts_with("POST /push.v1.PusherService/Push HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/proto\r\n"), "{head}");
    assert!(head.contains("x-scope-orgid: us\r\n"), "{head}");
    let (labels, pprof) = of_pyroscope(&body);
    let of = |key: &str| labels.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    assert_eq!((of("service_name"), of("version")), (Some("shop"), Some("1.4")), "{labels:?}");
    assert_eq!(of("__name__"), Some("wall"), "{labels:?}");
    assert!(pprof == expected, "another profile than convert's");

    run(arguments.into_iter().chain(["--parca", &url])).with_code(0);
    let (head, body) = requests.recv().unwrap();
    assert!(head.starts_with("POST /profiles/writeraw HTTP/1.1\r\n"), "{head}");
    let message: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let series = &message["series"][0];
    let labels = series["labels"]["labels"].as_array().unwrap();
    assert!(labels.contains(&serde_json::json!({ "name": "service_name", "value": "shop" })), "{labels:?}");
    let pprof = STANDARD.decode(series["samples"][0]["rawProfile"].as_str().unwrap()).unwrap();
    assert!(pprof == expected, "another profile than convert's");
}

#[test]
fn official_messages_have_the_same_samples_as_folded_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.nettrace");
    std::fs::write(&file, recording("net10-sample.nettrace.xz")).unwrap();
    let file = file.to_str().unwrap();
    let (address, requests) = server();
    let url = format!("http://{address}");
    run(["push", file, "--label", "version=1.4", "--otlp", &url]).with_code(0);
    requests.recv().unwrap();
    let (head, body) = requests.recv().unwrap();
    assert!(head.starts_with("POST /v1development/profiles HTTP/1.1\r\n"), "{head}");
    let request = ExportProfilesServiceRequest::decode(&*body).expect("an official message");
    let resource = request.resource_profiles[0].resource.as_ref().unwrap();
    let names: Vec<_> = resource.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
    // On which machine a recording was made, it does not say.
    assert_eq!(names, ["service.version", "service.name", "process.runtime.name"]);
    let tables = request.dictionary.unwrap();
    // Each first row stands for nothing.
    let nothing = ProfilesDictionary {
        mapping_table: vec![Mapping::default()],
        location_table: vec![Location::default()],
        function_table: vec![Function::default()],
        link_table: vec![Link::default()],
        string_table: vec![String::new()],
        attribute_table: vec![KeyValueAndUnit::default()],
        stack_table: vec![Stack::default()],
    };
    let first = ProfilesDictionary {
        mapping_table: tables.mapping_table[..1].to_vec(),
        location_table: tables.location_table[..1].to_vec(),
        function_table: tables.function_table[..1].to_vec(),
        link_table: tables.link_table.clone(),
        string_table: tables.string_table[..1].to_vec(),
        attribute_table: tables.attribute_table[..1].to_vec(),
        stack_table: tables.stack_table[..1].to_vec(),
    };
    assert_eq!(first, nothing);
    let text = |index: i32| tables.string_table[usize::try_from(index).unwrap()].as_str();
    let profile = &request.resource_profiles[0].scope_profiles[0].profiles[0];
    let of = profile.sample_type.unwrap();
    assert_eq!((text(of.type_strindex), text(of.unit_strindex)), ("thread time", "nanoseconds"));
    assert_eq!((profile.period_type, profile.period), (Some(of), 1));

    let mut stacks = BTreeMap::<String, i64>::new();
    for sample in &profile.samples {
        let stack = &tables.stack_table[usize::try_from(sample.stack_index).unwrap()];
        let frames = stack.location_indices.iter().rev().map(|location| {
            let location = &tables.location_table[usize::try_from(*location).unwrap()];
            let function = &tables.function_table[usize::try_from(location.lines[0].function_index).unwrap()];
            text(function.system_name_strindex)
        });
        let attributes = sample
            .attribute_indices
            .iter()
            .map(|index| text(tables.attribute_table[usize::try_from(*index).unwrap()].key_strindex));
        assert_eq!(attributes.collect::<Vec<_>>(), ["thread.id", "thread.name"]);
        assert_eq!(sample.values.len(), 1);
        *stacks.entry(frames.collect::<Vec<_>>().join(";")).or_default() += sample.values[0];
    }
    let text = run(["convert", file, "-f", "folded", "-o", "-"]).with_code(0).text();
    let mut expected = BTreeMap::<String, i64>::new();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let stack = ["UNMANAGED_CODE_TIME", "BLOCKED_TIME", "CPU_TIME"].iter().fold(stack, |stack, kind| {
            stack.strip_suffix(kind).map_or(stack, |stack| stack.trim_end_matches(';'))
        });
        *expected.entry(stack.to_owned()).or_default() += weight.parse::<i64>().unwrap();
    }
    assert_eq!(stacks.values().sum::<i64>(), expected.values().sum::<i64>());
    assert_eq!(stacks.len(), expected.len());
    assert_eq!(stacks, expected);
}

#[test]
fn names_a_missing_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.nettrace");
    std::fs::write(&file, recording("net10-sample.nettrace.xz")).unwrap();
    let url = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let failed = run(["push", file.to_str().unwrap(), "--parca", &url]).with_code(3);
    failed.assert_error_names(&["push", "no profile arrived", "refused"]);
    assert!(failed.stderr.contains(&url), "{}", failed.stderr);
}

#[test]
fn profiles_that_a_collector_does_not_take_have_not_arrived() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.nettrace");
    std::fs::write(&file, recording("net10-sample.nettrace.xz")).unwrap();
    // ExportProfilesServiceResponse { partial_success { rejected_profiles: 1, error_message: "full" } }
    let (address, _requests) = server_with("200 OK", b"\x0a\x08\x08\x01\x12\x04full");
    let url = format!("http://{address}");
    let push = |code| run(["push", file.to_str().unwrap(), "--otlp", &url]).with_code(code);
    push(3).assert_error_names(&["no profile arrived", "1 profiles were not taken: full"]);
    push(0);
}

#[test]
fn processes_of_which_nothing_is_sent_are_a_failure() {
    let Some(one) = Workload::start(Runtime::NativeAot9) else { return };
    let Some(other) = Workload::start(Runtime::NativeAot9) else { return };
    let (address, requests) = server();
    let [one, other] = [one.pid(), other.pid()].map(|pid| pid.to_string());
    let url = format!("http://{address}");
    let arguments = ["push", "-p", &one, "-p", &other, "--sampler", "runtime", "--pyroscope", &url];
    run(arguments).with_code(4).assert_error_names(&["no sampler"]);
    assert!(requests.try_recv().is_err());
}

fn check_profiles(runtime: Runtime, sampler: &str) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    // Samples of a busy machine would be of the JIT compiler only.
    workload.run("spin 300");
    workload.send("spin 600000");
    let pid = workload.pid().to_string();
    let (address, requests) = server();
    let url = format!("http://{address}");
    let arguments = ["push", "-p", &pid, "--service", "shop", "--pyroscope", &url];
    let times = ["--every", "1500ms", "--duration", "1s", "--count", "2", "--sampler", sampler];
    let pushed = run(arguments.into_iter().chain(times));
    if sampler == "kernel" && pushed.code != Some(0) && pushed.stderr.contains("kernel's samples:") {
        return say_not_run("the kernel does not permit samples");
    }
    let pushed = pushed.with_code(0);
    assert_eq!(pushed.stderr.matches("by the kernel, 99 samples").count(), usize::from(sampler == "kernel"));
    let bodies: Vec<_> = requests.try_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies.len(), 3, "the first one twice");
    assert_ne!(bodies[1], bodies[2]);
    for body in bodies {
        let (labels, pprof) = of_pyroscope(&body);
        assert!(labels.contains(&("service_name".to_owned(), "shop".to_owned())), "{labels:?}");
        let name = if sampler == "kernel" { "process_cpu" } else { "wall" };
        assert!(labels.contains(&("__name__".to_owned(), name.to_owned())), "{labels:?}");
        let texts = texts(&pprof);
        if runtime != Runtime::NativeAot9 {
            assert!(texts.iter().any(|text| text.contains("Spin.Hot")), "{texts:?}");
        }
        assert!(texts.iter().any(|text| text == "nanoseconds"), "{texts:?}");
    }
}

#[test]
fn a_program_without_dotnet_is_profiled_by_the_kernel() {
    let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let (address, requests) = server();
    let (pid, url) = (busy.id().to_string(), format!("http://{address}"));
    let arguments = ["push", "-p", &pid, "--pyroscope", &url, "--duration", "1s", "--count", "1"];
    let pushed = run(arguments);
    let refused = run(arguments.into_iter().chain(["--sampler", "runtime"]));
    busy.kill().unwrap();
    busy.wait().unwrap();
    // No runtime can sample it.
    refused.with_code(3).assert_error_names(&[&pid]);
    if pushed.code != Some(0) && pushed.stderr.contains("kernel's samples:") {
        return say_not_run("the kernel does not permit samples");
    }
    let pushed = pushed.with_code(0);
    assert!(pushed.stderr.contains("sampling it without a runtime"), "{}", pushed.stderr);
    let (labels, pprof) = of_pyroscope(&requests.recv().unwrap().1);
    assert!(labels.contains(&("__name__".to_owned(), "process_cpu".to_owned())), "{labels:?}");
    assert!(texts(&pprof).iter().any(|text| text == "cpu"), "{:?}", texts(&pprof));
}

/// Its runtime has no sampler.
#[test]
fn the_kernel_profiles_nativeaot_again_and_again() {
    check_profiles(Runtime::NativeAot9, "kernel");
}

fn a_process_is_profiled_again_and_again(runtime: Runtime) {
    check_profiles(runtime, "runtime");
    check_profiles(runtime, "kernel");
}

on_runtimes!(a_process_is_profiled_again_and_again: net_3_1, net_9_0);

fn several_processes_are_profiled_at_the_same_time(runtime: Runtime) {
    let Some(mut one) = Workload::start(runtime) else { return };
    let Some(mut other) = Workload::start(runtime) else { return };
    for one in [&mut one, &mut other] {
        one.run("spin 300");
        one.send("spin 600000");
    }
    let (address, requests) = server();
    let url = format!("http://{address}");
    let pids = [one.pid(), other.pid()].map(|pid| pid.to_string());
    let [one, other] = &pids;
    let arguments = ["push", "-p", one, "-p", other, "-p", one, "--pyroscope", &url];
    let pushed = run(arguments.into_iter().chain(["--duration", "1s", "--count", "1"])).with_code(0);
    assert!(pushed.stderr.contains("Processes      : 2\n"), "{}", pushed.stderr);
    // One of them was refused first, and sent again.
    let mut profiled = std::collections::BTreeSet::new();
    for (_, body) in requests.try_iter() {
        let (labels, pprof) = of_pyroscope(&body);
        let pid = labels.iter().find(|(name, _)| name == "pid").map(|(_, pid)| pid.clone());
        profiled.insert(pid.expect("a label that tells them apart"));
        assert!(texts(&pprof).iter().any(|text| text.contains("Spin.Hot")));
    }
    assert_eq!(profiled, pids.into_iter().collect());
}

on_runtimes!(several_processes_are_profiled_at_the_same_time: net_9_0);

/// The collections of its own find what a program keeps.
#[test]
fn profiles_of_events_have_their_stacks() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    for (metric, command, name, unit) in [
        ("alloc", "alloc 200", "memory", "bytes"),
        ("live-alloc", "alloc 200", "memory", "bytes"),
        ("exception", "throw 50", "exceptions", "count"),
    ] {
        let (address, requests) = server();
        let url = format!("http://{address}");
        let deadline = Instant::now() + Duration::from_secs(120);
        // The program works while it is profiled.
        let body = loop {
            let pushing = thread::spawn({
                let (pid, url) = (pid.clone(), url.clone());
                move || {
                    let times = ["--every", "3s", "--duration", "3s", "--count", "1"];
                    run(["push", "-p", &pid, "--by", metric, "--pyroscope", &url].into_iter().chain(times))
                        .with_code(0)
                }
            });
            while !pushing.is_finished() {
                workload.run(command);
                workload.run("gc 2 1");
            }
            pushing.join().unwrap();
            if let Ok((_, body)) = requests.try_recv() {
                break body;
            }
            assert!(Instant::now() < deadline, "{metric}");
        };
        let (labels, pprof) = of_pyroscope(&body);
        assert!(labels.contains(&("__name__".to_owned(), name.to_owned())), "{labels:?}");
        let texts = texts(&pprof);
        assert!(texts.iter().any(|text| text == unit), "{metric}: {texts:?}");
        assert!(texts.iter().any(|text| text.contains("Program.Run(")), "{metric}: {texts:?}");
    }
}

/// Of one time: the kernel's samples and one session of the runtime.
#[test]
fn one_time_has_profiles_of_several_kinds() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("spin 300");
    let pid = workload.pid().to_string();
    let (address, requests) = server();
    let url = format!("http://{address}");
    let metrics = "cpu,off-cpu,alloc,exception,contention";
    let pushing = thread::spawn({
        let pid = pid.clone();
        move || {
            let times = ["--every", "3s", "--duration", "3s", "--count", "1"];
            run(["push", "-p", &pid, "--by", metrics, "--pyroscope", &url].into_iter().chain(times))
        }
    });
    let deadline = Instant::now() + Duration::from_secs(120);
    while !pushing.is_finished() {
        assert!(Instant::now() < deadline);
        workload.run("spin 100");
        workload.run("alloc 20");
        workload.run("throw 5");
    }
    let pushed = pushing.join().unwrap();
    if pushed.code != Some(0) && pushed.stderr.contains("kernel") {
        return say_not_run("the kernel does not permit samples of times off the processors");
    }
    let pushed = pushed.with_code(0);
    assert!(pushed.stderr.contains("Not pushed     : contention"), "{}", pushed.stderr);
    let mut found = BTreeMap::new();
    for (_, body) in requests.try_iter() {
        let (labels, pprof) = of_pyroscope(&body);
        let name = labels.into_iter().find(|(name, _)| name == "__name__").unwrap().1;
        found.insert(name, texts(&pprof));
    }
    let names: Vec<_> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["exceptions", "memory", "off_cpu", "process_cpu"]);
    // Each has the stacks of its own kind.
    let has = |name: &str, method: &str| found[name].iter().any(|text| text.contains(method));
    assert!(has("process_cpu", "Spin.Hot"), "{found:?}");
    assert!(!has("memory", "Spin.Hot") && !has("exceptions", "Spin.Hot"), "{found:?}");
    assert!(has("memory", "Program.Run(") && has("exceptions", "Program.Run("), "{found:?}");
    // Between two commands, the program waits for its standard input.
    assert!(has("off_cpu", "Main(") && found["off_cpu"].iter().any(|text| text == "off-CPU time"));
}

#[test]
fn metrics_without_a_session_are_refused() {
    let pid = std::process::id().to_string();
    let arguments = ["push", "-p", &pid, "--pyroscope", "http://127.0.0.1:9"];
    let refused = |more: &[&str], names: &[&str]| {
        run(arguments.into_iter().chain(more.iter().copied())).with_code(2).assert_error_names(names);
    };
    refused(&["--by", "gc"], &["live-alloc"]);
    refused(&["--by", "alloc,gc"], &["live-alloc"]);
    refused(&["--by", "alloc", "--sampler", "kernel"], &["--sampler", "--by cpu"]);
    refused(&["--by", "off-cpu", "--sampler", "runtime"], &["off-cpu", "threads that wait"]);
}
