//! The roles of threads.

use clr_events::{ThreadRole, ThreadRoles};
use nettrace::{SliceReader, ThreadId};
use nettrace_synth::Value;
use nettrace_synth::clr::Kind;

use crate::recording::Recording;

#[test]
fn events_determine_the_roles_of_threads() {
    let instance = [Value::UInt16(0)];
    let created = |thread, flags| {
        [
            Value::UInt64(1),
            Value::UInt64(2),
            Value::UInt32(flags),
            Value::UInt32(3),
            Value::UInt32(thread),
            Value::UInt16(0),
        ]
    };
    let marked = |heap| [Value::UInt32(heap), Value::UInt16(0), Value::UInt32(0), Value::UInt64(0)];
    let server = [
        Value::Raw(vec![0; 20]),
        Value::UInt32(0x1000),
        Value::Raw(vec![1]),
        Value::string16("app"),
        Value::Raw(vec![0; 16]),
        Value::string16("libcoreclr.so"),
    ];
    let mut recording = Recording::default();
    recording
        .event_of_thread(Kind::runtime(14, 1), 10, 1, &instance)
        .event_of_thread(Kind::runtime(54, 0), 11, 2, &[Value::Raw(vec![0; 8]), Value::UInt16(0)])
        .event_of_thread(Kind::private(11, 0), 12, 3, &instance)
        .event_of_thread(Kind::runtime(85, 0), 99, 4, &created(13, 4))
        .event_of_thread(Kind::rundown(159, 0), 99, 5, &created(14, 0))
        // The first reported one holds.
        .event_of_thread(Kind::runtime(85, 0), 99, 6, &created(10, 4))
        .event_of_thread(Kind::runtime(202, 0), 15, 7, &marked(1));
    let role = |recording: &Recording, thread| {
        let mut roles = ThreadRoles::default();
        SliceReader::new(&recording.bytes()).unwrap().for_each(|event| roles.add(&event)).unwrap();
        roles.get(Some(4242), ThreadId(thread))
    };
    assert_eq!(role(&recording, 10), Some(ThreadRole::Finalizer));
    assert_eq!(role(&recording, 11), Some(ThreadRole::PoolWorker));
    assert_eq!(role(&recording, 12), Some(ThreadRole::BackgroundGc));
    assert_eq!(role(&recording, 13), Some(ThreadRole::PoolWorker));
    assert_eq!(role(&recording, 14), None);
    assert_eq!(role(&recording, 99), None);
    // A marking thread is the collector's own only in a server collector.
    assert_eq!(role(&recording, 15), None);
    recording.event_of_thread(Kind::rundown(187, 0), 99, 8, &server);
    assert_eq!(
        role(&recording, 15).map(|role| role.to_string()).as_deref(),
        Some(".NET Server GC Thread(1)")
    );
}
