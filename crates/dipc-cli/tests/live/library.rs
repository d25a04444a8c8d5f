//! Sessions of the crate `dipc-client` with real runtimes that send nothing.

use std::io;
use std::time::Duration;

use dipc_client::{Error, ProcessState, Providers, Session, SessionConfig, Target, Timeouts};
use nettrace::{Reader, SliceReader};
use rustix::process::Signal;

use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{Workload, await_providers};

on_each_runtime!(
    a_copy_of_a_stopped_program_ends_and_loses_nothing,
    shows_the_last_events_in_time_order_during_silence,
);

/// Long enough for a look at the state of the process.
const SILENCE: Duration = Duration::from_millis(500);
/// Far longer than a test takes.
const LONG: Duration = Duration::from_secs(3600);

/// A session of the workload's own events.
fn start(workload: &Workload) -> Session {
    let target = Target::from_pid(workload.pid()).unwrap();
    let target = target.with_timeouts(Timeouts::default().with_silence(SILENCE));
    target
        .start_session(&SessionConfig::new(Providers::parse("Workload-Typed:FFFFFFFFFFFFFFFF:5").unwrap()))
        .unwrap()
}

fn a_copy_of_a_stopped_program_ends_and_loses_nothing(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let mut session = start(&workload);
    session.stop_after(LONG);
    await_providers(runtime);
    workload.run("emit 10");
    workload.halt();
    let mut bytes = Vec::new();
    let error = io::copy(&mut session.reader(), &mut bytes).unwrap_err().downcast::<Error>().unwrap();
    assert!(
        matches!(&error, Error::Silent { peer_state: Some(ProcessState::Stopped), .. }),
        "{error:?} after {} bytes",
        bytes.len()
    );
    assert!(error.to_string().contains("dotnet-diagnostic-"), "{error}");
    workload.signal(Signal::CONT);
    session.request_stop().unwrap();
    io::copy(&mut session.reader(), &mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, session.bytes_read());
    let mut events = SliceReader::new(&bytes).unwrap();
    let mut starts = 0;
    events.for_each(|event| starts += u32::from(event.name() == "RequestStart")).unwrap();
    assert_eq!((starts, events.loss().total()), (10, 0));
    assert_eq!((events.truncated_at(), events.damage_count()), (None, 0));
}

fn shows_the_last_events_in_time_order_during_silence(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let mut session = start(&workload);
    session.limit_silence(SILENCE);
    let stopper = session.stopper();
    let mut events = Reader::new(session.reader()).unwrap().in_time_order();
    // Of the last round, and those before it.
    let (mut starts, mut before, mut rounds) = (0, None, 0);
    loop {
        match events.next() {
            Ok(Some(event)) => starts += u32::from(event.name() == "RequestStart"),
            Ok(None) => break,
            Err(error) => {
                assert!(error.is_timeout(), "{error}");
                match before {
                    // A runtime answers before the provider is enabled: the first rounds may be too early.
                    None => {
                        rounds += 1;
                        assert!(rounds < 20, "no event comes");
                        before = (starts > 0).then_some(starts);
                        workload.run("emit 10");
                    }
                    // Nothing follows that would show their order.
                    Some(before) => {
                        assert_eq!(starts, before + 10);
                        stopper.request_stop().unwrap();
                    }
                }
            }
        }
    }
    assert_eq!(before.map(|before| before + 10), Some(starts));
}
