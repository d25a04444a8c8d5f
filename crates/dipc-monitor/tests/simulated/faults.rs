//! Processes that hang, die or wait do not affect others.

use std::time::Instant;

use dipc_client::Uuid;
use dipc_sim::{Fault, Runtime};

use crate::{Fixture, PATIENCE, await_that};

#[test]
fn a_suspended_runtime_is_resumed() {
    let fixture = Fixture::start();
    let runtime = fixture.add(Runtime::builder().suspended());
    await_that("it runs", || !runtime.state().suspended);
}

/// Twenty hang in the first question: more than are asked at once.
#[test]
fn processes_that_hang_do_not_delay_others() {
    let fixture = Fixture::start();
    let hung: Vec<_> = (0..20)
        .map(|number| {
            let builder = Runtime::builder().cookie(Uuid::from_u128(100 + number)).fault(Fault::NeverAnswer);
            builder.connect(&fixture.port).unwrap()
        })
        .collect();
    await_that("all are known", || fixture.monitor.unanswered().len() == hung.len());
    let before = Instant::now();
    let _runtime = fixture.add(Runtime::builder().cookie(Uuid::from_u128(1)));
    // A question is given up after three seconds.
    assert!(before.elapsed() < PATIENCE / 4, "{:?}", before.elapsed());
    let list = fixture.get("/processes").json();
    assert_eq!(list.as_array().unwrap().len(), 1);
    await_that("they are asked again", || fixture.monitor.unanswered().iter().any(|it| it.attempts > 1));
}

#[test]
fn the_end_of_a_process_is_noticed() {
    let fixture = Fixture::over_tcp();
    let one = fixture.add(Runtime::builder().cookie(Uuid::from_u128(1)));
    let _two = fixture.add(Runtime::builder().cookie(Uuid::from_u128(2)));
    let process = fixture.monitor.processes().into_iter().find(|it| it.uid == Uuid::from_u128(1)).unwrap();
    drop(one);
    await_that("one is left", || fixture.monitor.processes().len() == 1);
    assert!(process.has_ended());
}
