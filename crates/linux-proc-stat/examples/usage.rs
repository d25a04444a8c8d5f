//! Prints what a process used in two seconds: `cargo run -p linux-proc-stat --example usage -- PID`.

use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux_proc_stat::{ProcessUsage, UsageChange};

fn main() -> Result<(), Box<dyn Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: usage PID")?.parse()?;
    let first = ProcessUsage::read(pid)?;
    println!("read in {:?}", first.at.elapsed());
    sleep(Duration::from_secs(2).saturating_sub(Instant::now().duration_since(first.at)));
    let second = ProcessUsage::read(pid)?;
    let change = UsageChange::between(&first, &second).ok_or("another process has its id")?;
    println!("{:#?}\nusable: {:?} processors", change.cpu, second.usable_processors());
    println!("{:?} threads, grown by {:?}", second.thread_count, change.thread_growth);
    for thread in change.top_by_cpu(3) {
        println!("  busy {:?} {}: {:.2?} cores", thread.name, thread.tid, thread.cores);
    }
    for thread in change.top_by_run_queue(3) {
        println!("  runnable {:?} {}: {:.2?} of the time", thread.name, thread.tid, thread.run_queue);
    }
    println!("{:#?}\n{:#?}", second.memory, change.memory);
    println!("{:#?}, grown by {:?}", second.descriptors, change.descriptor_kind_growth);
    println!("major faults per second: {:?}", change.major_faults_per_second);
    println!("{:#?}\n{:#?}", second.group, change.group);
    println!("{:#?}\nunread: {:#?}", change.machine, second.unread);
    Ok(())
}
