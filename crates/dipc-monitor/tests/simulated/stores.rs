//! Artifacts for object stores: they wait in the queue until the store takes them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use dipc_monitor::configuration::{Configuration, ConfigurationSources, StoreEgress};
use dipc_monitor::{EgressQueue, RulesConfig, StoreClient, Tokens};
use dipc_sim::{Runtime, Speed};

use crate::egress::with_queue;
use crate::{Fixture, await_that};

/// A store in memory, which refuses the first uploads.
#[derive(Debug, Default)]
struct Store {
    refusals: Mutex<usize>,
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Store {
    fn refusing(count: usize) -> Arc<Self> {
        Arc::new(Self { refusals: Mutex::new(count), objects: Mutex::default() })
    }

    fn objects(&self) -> Vec<(String, Vec<u8>)> {
        self.objects.lock().unwrap().clone().into_iter().collect()
    }
}

impl StoreClient for Store {
    fn upload(&self, store: &StoreEgress, name: &str, file: &Path) -> io::Result<()> {
        let mut refusals = self.refusals.lock().unwrap();
        if let Some(fewer) = refusals.checked_sub(1) {
            *refusals = fewer;
            return Err(io::Error::other("the store is closed"));
        }
        drop(refusals);
        self.objects.lock().unwrap().insert(store.address(name), fs::read(file)?);
        Ok(())
    }
}

const BUCKET: &str = r#""Egress": {"S3Storage": {"bucket": {"BucketName": "shop"}}}"#;

fn configuration(text: &str) -> Configuration {
    let checked = Configuration::read(&ConfigurationSources::new().with_text("test", text));
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
    checked.configuration
}

/// The files that wait in a queue.
fn waiting(queue: &Path) -> usize {
    fs::read_dir(queue.join("uploads")).map_or(0, Iterator::count)
}

/// The bytes are exactly what the runtime sent, and promised artifacts survive the end of the monitor.
#[test]
fn an_artifact_waits_in_the_queue_until_its_store_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let (queue_folder, port) = (folder.path().join("queue"), folder.path().join("port"));
    let providers = configuration(&format!("{{{BUCKET}}}")).egress;
    let recording = testdata::bytes("traces/net10-exceptions.nettrace.xz");
    let open = |store: &Arc<Store>| {
        let queue =
            EgressQueue::open(&queue_folder).ok()?.with_stores(Arc::clone(store) as Arc<dyn StoreClient>);
        queue.set_providers(providers.clone());
        Some(queue)
    };
    let closed = Store::refusing(usize::MAX);
    let queue = open(&closed).unwrap();
    let fixture = Fixture::at_with_server(port.as_path().into(), with_queue(&queue));
    let runtime =
        fixture.add(Runtime::builder().replay(recording.clone()).speed(Speed::Max).end_with_recording());
    let answer = fixture.get("/trace?durationSeconds=-1&egressProvider=bucket");
    assert_eq!(answer.status, 202);
    let location = answer.header("location").unwrap().to_owned();
    let path = location.strip_prefix("http://localhost").unwrap();
    await_that("the failure is stated", || {
        let error = &fixture.get(path).json()["error"]["message"];
        error.as_str().is_some_and(|error| error == "it is tried again: the store is closed")
    });
    assert_eq!((queue.len(), waiting(&queue_folder)), (1, 1));
    queue.close();
    drop((fixture, runtime, queue));
    // Files without a job are removed by the next run.
    fs::write(queue_folder.join("uploads/.left.part"), "x").unwrap();
    let store = Store::refusing(1);
    let opened = std::cell::RefCell::new(None);
    await_that("the queue is free", || {
        *opened.borrow_mut() = open(&store);
        opened.borrow().is_some()
    });
    let queue = opened.into_inner().unwrap();
    let fixture = Fixture::at_with_server(port.as_path().into(), with_queue(&queue));
    queue.resume(&fixture.monitor, &fixture.operations);
    await_that("it is complete", || fixture.get(path).status == 201);
    let objects = store.objects();
    assert_eq!(objects.len(), 1);
    assert_eq!(fixture.get(path).json()["resourceLocation"], *objects[0].0);
    assert!(
        objects[0].0.starts_with("s3://shop/") && objects[0].0.ends_with(".nettrace"),
        "{}",
        objects[0].0
    );
    assert_eq!(objects[0].1, recording);
    await_that("nothing is left", || (queue.len(), waiting(&queue_folder)) == (0, 0));
    // Without a client, requests are refused.
    let plain = EgressQueue::open(&folder.path().join("plain")).unwrap();
    plain.set_providers(providers.clone());
    let fixture = Fixture::with_server(with_queue(&plain));
    let _runtime = fixture.add(Runtime::builder());
    let refused = fixture.get("/trace?egressProvider=bucket");
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("S3Storage, which is not supported"), "{}", refused.text());
}

/// The action ends when its artifact has arrived, with its place as output.
#[test]
fn delivers_artifacts_of_rules_to_stores() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        r#"{{{BUCKET}, "CollectionRules": {{"First": {{"Trigger": {{"Type": "Startup"}}, "Actions": [
            {{"Type": "CollectTrace", "Settings": {{"Egress": "bucket", "Profile": "Cpu", "Duration": "00:00:01",
              "ArtifactName": "first.nettrace"}}}}]}}}}}}"#
    );
    let configuration = configuration(&text);
    let store = Store::refusing(2);
    let queue_folder = folder.path().join("queue");
    let queue =
        EgressQueue::open(&queue_folder).unwrap().with_stores(Arc::clone(&store) as Arc<dyn StoreClient>);
    queue.set_providers(configuration.egress.clone());
    let fixture = Fixture::observed(
        folder.path().join("port").as_path().into(),
        Tokens::default(),
        None,
        RulesConfig::of(&configuration),
        Vec::new(),
        with_queue(&queue),
    );
    let recording = testdata::bytes("traces/net10-exceptions.nettrace.xz");
    let _runtime =
        fixture.add(Runtime::builder().replay(recording.clone()).speed(Speed::Max).end_with_recording());
    let said = |text: &str| fixture.messages.lock().unwrap().iter().any(|it| it.event.to_string() == text);
    await_that("the action is done", || said("CollectTrace: s3://shop/first.nettrace"));
    assert_eq!(store.objects(), [("s3://shop/first.nettrace".to_owned(), recording)]);
    assert_eq!((queue.len(), waiting(&queue_folder)), (0, 0));
    let operation = &fixture.operations.list()[0];
    assert_eq!((operation.error.as_deref(), operation.egress_provider.as_deref()), (None, Some("bucket")));
}
