//! Sessions: shared, limited, and ended with their last consumer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clr_counters::{Sample, Selection};
use dipc_monitor::{CounterConsumer, CounterRequest};
use dipc_sim::Runtime;

use crate::{Fixture, await_that, counters, http};

/// Counts the samples, and keeps the names of their series.
#[derive(Clone, Default)]
struct Counting {
    count: Arc<AtomicU64>,
    names: Arc<Mutex<std::collections::BTreeSet<String>>>,
}

impl CounterConsumer for Counting {
    fn sample(&mut self, sample: &Sample<'_>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.names.lock().unwrap().insert(sample.series.name.clone());
    }
}

impl Counting {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

fn request(list: &str, seconds: u64) -> CounterRequest {
    CounterRequest::new(Selection::parse(list).unwrap(), Duration::from_secs(seconds))
}

#[test]
fn consumers_share_a_session_that_ends_with_the_last() {
    let fixture = Fixture::start();
    let runtime = fixture.add(Runtime::builder().replay(counters()).looped());
    let process = Arc::clone(&fixture.monitor.processes()[0]);
    assert_eq!(runtime.session_count(), 0, "nobody wants anything");
    let (all, one) = (Counting::default(), Counting::default());
    let first = process.counters.subscribe(request("System.Runtime", 1), Box::new(all.clone()));
    await_that("values come", || all.count() > 0);
    // The same counters are thinned from the running session.
    let second = process.counters.subscribe(request("System.Runtime", 1), Box::new(one.clone()));
    await_that("values come to both", || one.count() > 0);
    assert_eq!((runtime.session_count(), process.counters.session_count()), (1, 1));
    // A consumer of other counters replaces the session with one for both.
    let other = Counting::default();
    let third = process
        .counters
        .subscribe(request(r"EventCounters\System.Runtime[cpu-usage]", 1), Box::new(other.clone()));
    await_that("the session is replaced", || process.counters.session_count() == 2);
    await_that("values come to the third", || other.count() > 0);
    assert_eq!(*other.names.lock().unwrap(), ["cpu-usage".to_owned()].into());
    assert!(runtime.session_count() <= 1, "one at a time");
    drop((first, second));
    assert_eq!(process.counters.consumer_count(), 1);
    drop(third);
    await_that("the session has ended", || runtime.session_count() == 0 && !process.counters.is_running());
}

#[test]
fn the_fourth_trace_at_once_is_refused() {
    let fixture = Fixture::start();
    let runtime = fixture.add(Runtime::builder().rate(100));
    // Sources with filters would add the session that sends the filters again.
    let path = "/trace?durationSeconds=-1&tags=x&profile=Cpu";
    let running: Vec<_> = (0..3).map(|_| http::send(fixture.address(), "GET", path, "", "")).collect();
    let list = || fixture.get("/operations").json();
    // A session is in the runtime a moment before its operation runs.
    await_that("three sessions run", || (0..3).all(|number| list()[number]["status"] == "Running"));
    assert_eq!(runtime.session_count(), 3);
    let refused = fixture.get(path);
    assert_eq!((refused.status, refused.header("content-type")), (429, Some("application/problem+json")));
    let list = list();
    let id = |number: usize| list[number]["operationId"].as_str().unwrap().to_owned();
    assert_eq!(list[0]["isStoppable"].as_bool(), Some(true));
    // Stopped: the whole rest comes. Cancelled: the answer is cut.
    let delete = |path: String| http::receive(http::send(fixture.address(), "DELETE", &path, "", "")).status;
    assert_eq!(delete(format!("/operations/{}?stop=true", id(0))), 202);
    assert_eq!(delete(format!("/operations/{}", id(1))), 200);
    await_that("one session is left", || runtime.session_count() == 1);
    let status = |number| fixture.get(&format!("/operations/{}", id(number))).json()["status"].clone();
    await_that("the first is complete", || status(0) == "Succeeded");
    assert_eq!(status(1), "Cancelled");
    assert_eq!(delete(format!("/operations/{}?stop=true", id(1))), 400);
    assert_eq!(delete(format!("/operations/{}", id(2))), 200);
    let answers = running.into_iter().map(http::receive);
    assert_eq!(answers.filter(|answer| answer.is_whole).count(), 1);
    await_that("no session is left", || runtime.session_count() == 0);
}

#[test]
fn a_client_that_leaves_ends_its_session() {
    let fixture = Fixture::start();
    // Nothing arrives, so no write would show that the client has left.
    let runtime = fixture.add(Runtime::builder());
    let stream = http::send(fixture.address(), "GET", "/trace?durationSeconds=-1", "", "");
    await_that("the session runs", || runtime.session_count() == 1);
    drop(stream);
    await_that("the session has ended", || runtime.session_count() == 0);
    await_that("it failed", || fixture.get("/operations").json()[0]["status"] == "Failed");
}

#[test]
fn a_reader_that_stalls_loses_its_session() {
    let fixture = Fixture::start();
    let runtime = fixture.add(Runtime::builder().rate(200_000));
    let stream = http::send(fixture.address(), "GET", "/trace?durationSeconds=-1", "", "");
    await_that("the session runs", || runtime.session_count() == 1);
    // Nothing is read: after thirty seconds without a byte taken the session is given up.
    await_that("the session has ended", || runtime.session_count() == 0);
    await_that("the operation has failed", || fixture.get("/operations").json()[0]["status"] == "Failed");
    assert!(!http::receive(stream).is_whole);
}

#[test]
fn the_end_of_the_monitor_ends_the_sessions() {
    let fixture = Fixture::start();
    let runtime = fixture.add(Runtime::builder().replay(counters()).looped());
    let process = Arc::clone(&fixture.monitor.processes()[0]);
    let consumer = Counting::default();
    let _subscription = process.counters.subscribe(request("System.Runtime", 1), Box::new(consumer.clone()));
    let _trace = http::send(fixture.address(), "GET", "/trace?durationSeconds=-1", "", "");
    await_that("both sessions run", || runtime.session_count() == 2);
    drop(fixture);
    await_that("no session is left", || runtime.session_count() == 0);
}
