use std::time::Duration;

use linux_proc_stat::{MachineCpu, OtherProcess, ThreadUsage};

use super::*;
use crate::{Evidence, diagnose};

const SECOND: u64 = 1_000_000_000;

/// Readings at a distance of 2 s: a thread ran for half of a second and waited for a processor for 1.2 s, and
/// another process ran for 2 s.
fn readings(thread: &str, other: u32) -> [ProcessUsage; 2] {
    let mut first = ProcessUsage::read(std::process::id()).unwrap();
    let mut of_thread = ThreadUsage::default();
    of_thread.tid = 7;
    thread.clone_into(&mut of_thread.name);
    (of_thread.cpu_ns, of_thread.run_queue_ns) = (Some(0), Some(0));
    first.threads = vec![of_thread];
    (first.user_ns, first.system_ns) = (Some(0), Some(0));
    first.machine.cpu = Some(MachineCpu::default());
    let mut of_other = OtherProcess::default();
    (of_other.pid, of_other.name) = (other, "build".to_owned());
    first.machine.other_processes = vec![of_other];
    let mut second = first.clone();
    second.at += Duration::from_secs(2);
    second.user_ns = Some(SECOND / 2);
    (second.threads[0].cpu_ns, second.threads[0].run_queue_ns) = (Some(SECOND / 2), Some(SECOND * 12 / 10));
    let mut cpu = MachineCpu::default();
    (cpu.user_ns, cpu.idle_ns) = (SECOND * 5 / 2, SECOND * 3 / 2);
    second.machine.cpu = Some(cpu);
    second.machine.other_processes[0].cpu_ns = 2 * SECOND;
    [first, second]
}

#[test]
fn other_processes_are_in_the_way_of_the_programs_threads_only() {
    let judge = |thread: &str, other| {
        let findings = diagnose(&Evidence::default().with_usage(&readings(thread, other)));
        let mut neighbours = findings.iter().filter(|finding| finding.kind == FindingKind::BusyNeighbour);
        neighbours.next().map(|finding| finding.cause.clone())
    };
    let other = std::process::id() + 1;
    let cause = format!(
        "Other processes are in the way: 0.6 threads were ready without a processor, 70.59% of the time that they wanted \
         to run; the busiest is build ({other}) with 1.0 processors"
    );
    assert_eq!(judge("worker", other), Some(cause));
    // The runtime's thread for the session of this program, and this program itself.
    assert_eq!(judge(SESSION_THREAD, other), None);
    assert_eq!(judge("worker", std::process::id()), None);
}
