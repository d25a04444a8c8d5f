//! Artifacts for egress providers: promised, collected, and gone on with by the next run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dipc_monitor::configuration::{DirectoryEgress, EgressProvider};
use dipc_monitor::{EgressQueue, Operations, Retention, ServerConfig, Tokens};
use dipc_sim::{Runtime, Speed};

use crate::{Fixture, await_that, http};

fn providers(directory: &Path) -> BTreeMap<String, EgressProvider> {
    let egress = DirectoryEgress { directory: directory.to_owned(), ..DirectoryEgress::default() };
    let blob = EgressProvider::Unsupported("AzureBlobStorage");
    [("files".to_owned(), EgressProvider::FileSystem(egress)), ("blob".to_owned(), blob)].into()
}

pub(crate) fn with_queue(queue: &EgressQueue) -> impl FnOnce(ServerConfig) -> ServerConfig {
    let queue = queue.clone();
    move |config| config.with_queue(Some(queue))
}

/// The files of a directory, without names that begin with a dot.
fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.')).collect()
}

#[test]
fn an_artifact_is_written_to_its_provider() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = folder.path().join("artifacts");
    let queue = EgressQueue::open(&folder.path().join("queue")).unwrap();
    queue.set_providers(providers(&artifacts));
    let fixture = Fixture::with_server(with_queue(&queue));
    let recording = testdata::bytes("traces/net10-exceptions.nettrace.xz");
    let _runtime =
        fixture.add(Runtime::builder().replay(recording.clone()).speed(Speed::Max).end_with_recording());
    let answer = fixture.get("/trace?durationSeconds=-1&egressProvider=files&tags=a");
    assert_eq!((answer.status, &*answer.body), (202, &b""[..]));
    let location = answer.header("location").unwrap().to_owned();
    let path = location.strip_prefix("http://localhost").unwrap();
    await_that("it is complete", || fixture.get(path).status == 201);
    let operation = fixture.get(path).json();
    assert_eq!(
        (&operation["status"], &operation["egressProviderName"]),
        (&"Succeeded".into(), &"files".into())
    );
    let files = files(&artifacts);
    assert_eq!(operation["resourceLocation"], files[0].to_str().unwrap());
    assert_eq!((files.len(), fs::read(&files[0]).unwrap()), (1, recording));
    assert!(queue.is_empty());
    for (provider, part) in [("blob", "AzureBlobStorage"), ("nosuch", "no egress provider 'nosuch'")] {
        let refused = fixture.get(&format!("/trace?egressProvider={provider}"));
        assert_eq!(refused.status, 400);
        assert!(refused.json()["errors"]["egressProvider"][0].as_str().unwrap().contains(part));
    }
    // A request that is not valid is not promised.
    assert_eq!(fixture.get("/trace?egressProvider=files&durationSeconds=x").status, 400);
    assert!(queue.is_empty());
}

#[test]
fn the_next_run_resumes_promised_artifacts() {
    let folder = tempfile::tempdir().unwrap();
    let (artifacts, queue_folder) = (folder.path().join("artifacts"), folder.path().join("queue"));
    let port = folder.path().join("port");
    let start = |queue: &EgressQueue| {
        queue.set_providers(providers(&artifacts));
        Fixture::at_with_server(port.as_path().into(), with_queue(queue))
    };
    let queue = EgressQueue::open(&queue_folder).unwrap();
    let fixture = start(&queue);
    let runtime = fixture.add(Runtime::builder().rate(100));
    let answer = http::post(
        fixture.address(),
        "/trace?durationSeconds=-1&egressProvider=files",
        r#"{"providers":[{"name":"A"}],"requestRundown":false}"#,
    );
    assert_eq!(answer.status, 202);
    let location = answer.header("location").unwrap().to_owned();
    let path = location.strip_prefix("http://localhost").unwrap();
    await_that("the session runs", || runtime.session_count() == 1);
    queue.close();
    drop(fixture);
    await_that("the session has ended", || runtime.session_count() == 0);
    assert_eq!((files(&artifacts), queue.len()), (Vec::new(), 1));
    drop(queue);
    // The last thread of the first run may still hold the queue.
    let queue = std::cell::RefCell::new(None);
    await_that("the queue is free", || {
        *queue.borrow_mut() = EgressQueue::open(&queue_folder).ok();
        queue.borrow().is_some()
    });
    let queue = queue.into_inner().unwrap();
    let fixture = start(&queue);
    await_that("the runtime is there again", || fixture.monitor.processes().len() == 1);
    queue.resume(&fixture.monitor, &fixture.operations);
    await_that("it is collected again", || runtime.session_count() == 1);
    // It is the same operation, which can be stopped.
    await_that("the operation runs", || fixture.get(path).json()["status"] == "Running");
    let stop = http::send(fixture.address(), "DELETE", &format!("{path}?stop=true"), "", "");
    assert_eq!(http::receive(stop).status, 202);
    await_that("it is complete", || fixture.get(path).status == 201);
    let files = files(&artifacts);
    assert_eq!((files.len(), queue.len()), (1, 0));
    let mut reader = nettrace::Reader::new(fs::File::open(&files[0]).unwrap()).unwrap();
    reader.for_each(|_| {}).unwrap();
    assert_eq!(reader.truncated_at(), None);
}

/// The destination comes back later.
#[test]
fn a_destination_that_fails_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = folder.path().join("artifacts");
    let queue = EgressQueue::open(&folder.path().join("queue")).unwrap();
    let egress = DirectoryEgress {
        directory: artifacts.clone(),
        intermediate: Some(folder.path().join("parts")),
        ..DirectoryEgress::default()
    };
    queue.set_providers([("files".to_owned(), EgressProvider::FileSystem(egress))].into());
    let fixture = Fixture::with_server(with_queue(&queue));
    let runtime = fixture.add(Runtime::builder().rate(100));
    let answer = fixture.get("/trace?durationSeconds=-1&egressProvider=files");
    let location = answer.header("location").unwrap().to_owned();
    let path = location.strip_prefix("http://localhost").unwrap();
    await_that("the session runs", || runtime.session_count() == 1 && artifacts.is_dir());
    await_that("the operation runs", || fixture.get(path).json()["status"] == "Running");
    fs::remove_dir(&artifacts).unwrap();
    fs::write(&artifacts, "another file").unwrap();
    let stop = http::send(fixture.address(), "DELETE", &format!("{path}?stop=true"), "", "");
    assert_eq!(http::receive(stop).status, 202);
    await_that("the failure is stated", || {
        let error = &fixture.get(path).json()["error"]["message"];
        error.as_str().is_some_and(|error| error.starts_with("it is tried again: "))
    });
    assert_eq!(queue.len(), 1);
    fs::remove_file(&artifacts).unwrap();
    await_that("it is complete", || fixture.get(path).status == 201);
    assert_eq!((files(&artifacts).len(), queue.len()), (1, 0));
    let operations: &Operations = &fixture.operations;
    assert_eq!(operations.list()[0].error, None);
}

/// A directory that can never be created: its parent is a file.
struct Unusable {
    folder: tempfile::TempDir,
    recording: Vec<u8>,
}

impl Unusable {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        Self { folder, recording: testdata::bytes("traces/net10-sample.nettrace.xz") }
    }

    fn queue(&self) -> EgressQueue {
        // The last thread of an earlier run may still hold it.
        let queue = std::cell::RefCell::new(None);
        await_that("the queue is free", || {
            *queue.borrow_mut() = EgressQueue::open(&self.folder.path().join("queue")).ok();
            queue.borrow().is_some()
        });
        let queue = queue.into_inner().unwrap();
        queue.set_providers(providers(&self.artifacts()));
        queue
    }

    fn artifacts(&self) -> PathBuf {
        self.folder.path().join("file/artifacts")
    }

    fn runtime(&self) -> dipc_sim::Builder {
        Runtime::builder().replay(self.recording.clone()).speed(Speed::Max).end_with_recording()
    }

    fn waiting(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("queue/uploads")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn mend(&self) {
        fs::remove_file(self.folder.path().join("file")).unwrap();
    }

    fn assert_arrived(&self, queue: &EgressQueue) {
        let files = files(&self.artifacts());
        assert_eq!((files.len(), fs::read(&files[0]).unwrap()), (1, self.recording.clone()));
        assert_eq!((queue.len(), self.waiting()), (0, Vec::new()));
    }
}

/// Requests an artifact, and waits until its directory is tried again. Returns the path of the operation.
fn request_until_it_waits(fixture: &Fixture) -> String {
    let answer = fixture.get("/trace?durationSeconds=-1&egressProvider=files");
    assert_eq!(answer.status, 202);
    let path = answer.header("location").unwrap().strip_prefix("http://localhost").unwrap().to_owned();
    await_that("the failure is stated", || {
        let operation = fixture.get(&path).json();
        let error = operation["error"]["message"].as_str().unwrap_or_default().to_owned();
        operation["status"] == "Running" && error.starts_with("it is tried again: ")
    });
    path
}

#[test]
fn an_artifact_waits_until_its_directory_can_be_written() {
    let place = Unusable::new();
    let queue = place.queue();
    let fixture = Fixture::with_server(with_queue(&queue));
    let _runtime = fixture.add(place.runtime());
    let path = request_until_it_waits(&fixture);
    assert_eq!((queue.len(), place.waiting().len()), (1, 1));
    place.mend();
    await_that("it is complete", || fixture.get(&path).status == 201);
    place.assert_arrived(&queue);
}

#[test]
fn an_artifact_that_waits_survives_a_restart() {
    let place = Unusable::new();
    let queue = place.queue();
    let fixture = Fixture::with_server(with_queue(&queue));
    let runtime = fixture.add(place.runtime());
    let path = request_until_it_waits(&fixture);
    queue.close();
    drop(fixture);
    drop((queue, runtime));
    let queue = place.queue();
    // The process has ended, too.
    let fixture = Fixture::with_server(with_queue(&queue));
    place.mend();
    queue.resume(&fixture.monitor, &fixture.operations);
    await_that("it is complete", || fixture.get(&path).status == 201);
    place.assert_arrived(&queue);
}

#[test]
fn an_artifact_that_waits_can_be_cancelled() {
    let place = Unusable::new();
    let queue = place.queue();
    let fixture = Fixture::with_server(with_queue(&queue));
    let _runtime = fixture.add(place.runtime());
    let path = request_until_it_waits(&fixture);
    assert_eq!(http::receive(http::send(fixture.address(), "DELETE", &path, "", "")).status, 200);
    await_that("it is forgotten", || queue.is_empty() && place.waiting().is_empty());
    assert_eq!(fixture.get(&path).json()["status"], "Cancelled");
}

#[test]
fn an_artifact_without_any_place_fails_with_the_reasons() {
    let place = Unusable::new();
    let queue = place.queue();
    fs::write(place.folder.path().join("queue/uploads"), "").unwrap();
    let fixture = Fixture::with_server(with_queue(&queue));
    let _runtime = fixture.add(place.runtime());
    let answer = fixture.get("/trace?durationSeconds=-1&egressProvider=files");
    let path = answer.header("location").unwrap().strip_prefix("http://localhost").unwrap().to_owned();
    await_that("it has failed", || fixture.get(&path).json()["status"] == "Failed");
    let error = fixture.get(&path).json()["error"]["message"].to_string();
    assert!(error.contains("file/artifacts: ") && error.contains("; in the queue instead: "), "{error}");
    assert!(queue.is_empty());
}

#[test]
fn an_artifact_of_a_rule_waits_until_its_directory_can_be_written() {
    let place = Unusable::new();
    let queue = place.queue();
    let directory = serde_json::to_string(&place.artifacts()).unwrap();
    let rules = crate::rules_config(&format!(
        r#"{{"Egress": {{"FileSystem": {{"files": {{"DirectoryPath": {directory}}}}}}},
            "CollectionRules": {{"First": {{"Trigger": {{"Type": "Startup"}}, "Actions": [{{
                "Type": "CollectTrace", "Settings": {{"Egress": "files", "Duration": "00:10:00",
                    "Providers": [{{"Name": "A"}}]}}}}]}}}}}}"#
    ));
    let port = place.folder.path().join("port");
    let fixture = Fixture::observed(
        port.as_path().into(),
        Tokens::default(),
        None,
        rules,
        Vec::new(),
        with_queue(&queue),
    );
    let _runtime = fixture.add(place.runtime());
    await_that("it waits", || queue.len() == 1);
    await_that("the failure is stated", || {
        let operation = &fixture.operations.list()[0];
        operation.error.as_ref().is_some_and(|error| error.starts_with("it is tried again: "))
    });
    place.mend();
    await_that("it has arrived", || queue.is_empty());
    place.assert_arrived(&queue);
}

/// What limits remove are artifacts of the queue, and nothing else.
#[test]
fn a_directory_keeps_as_many_artifacts_as_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = folder.path().join("artifacts");
    fs::create_dir(&artifacts).unwrap();
    fs::write(artifacts.join("foreign.nettrace"), "x").unwrap();
    let queue = EgressQueue::open(&folder.path().join("queue")).unwrap();
    let mut providers = providers(&artifacts);
    if let Some(EgressProvider::FileSystem(egress)) = providers.get_mut("files") {
        egress.retention = Retention::default().with_files(Some(1));
    }
    queue.set_providers(providers);
    let fixture = Fixture::with_server(with_queue(&queue));
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz");
    let _runtime = fixture.add(Runtime::builder().replay(recording).speed(Speed::Max).end_with_recording());
    let mut last = String::new();
    for _ in 0..2 {
        let answer = fixture.get("/trace?durationSeconds=-1&egressProvider=files");
        let location = answer.header("location").unwrap().to_owned();
        let path = location.strip_prefix("http://localhost").unwrap();
        await_that("it is complete", || fixture.get(path).status == 201);
        fixture.get(path).json()["resourceLocation"].as_str().unwrap().clone_into(&mut last);
    }
    let mut names = files(&artifacts);
    names.sort();
    let mut expected = vec![artifacts.join("foreign.nettrace"), last.into()];
    expected.sort();
    assert_eq!(names, expected);
}
