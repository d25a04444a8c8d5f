use super::*;
use crate::stat::TICK_NS;
use crate::test_tree::TestTree;

/// A line of `stat` with a name and the fields of these numbers; the others are 0.
fn stat(name: &str, fields: &[(usize, u64)]) -> String {
    let value = |number| fields.iter().find(|field| field.0 == number).map_or(0, |field| field.1);
    let fields: Vec<_> = (4..=52).map(|number| value(number).to_string()).collect();
    format!("9 ({name}) S {}\n", fields.join(" "))
}

/// A process 7 with two threads and a process 8, at a first and a second moment.
fn tree(name: &str, is_second: bool) -> TestTree {
    let at = |first: u64, second: u64| if is_second { second } else { first };
    let kilobytes = at(2048, 1024);
    let mounts = "1 1 0:1 / /nowhere rw - cgroup2 cgroup2 rw\n";
    let files = [
        (
            "7/stat",
            stat("shop", &[(10, at(1, 5)), (12, at(2, 8)), (14, at(100, 300)), (15, at(50, 150)), (22, 40)]),
        ),
        (
            "7/status",
            format!("Threads:\t2\nVmSize:\t9 kB\nVmRSS:\t{kilobytes} kB\nCpus_allowed_list:\t0-3\n"),
        ),
        ("7/task/7/stat", stat("shop", &[(22, 40)])),
        ("7/task/7/schedstat", format!("{} {} 5\n", at(0, 1_000_000_000), at(0, 500_000_000))),
        ("7/task/7/status", "voluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t1\n".into()),
        (
            if is_second { "7/task/12/stat" } else { "7/task/11/stat" },
            stat("a) R (b", &[(14, 100), (22, 50)]),
        ),
        ("7/limits", "Max open files            1024                 4096                 files\n".into()),
        ("7/io", format!("rchar: {}\nwchar: 7\nread_bytes: x\n", at(1000, 5000))),
        ("7/oom_score", "667\n".into()),
        ("7/oom_score_adj", "-5\n".into()),
        ("7/cgroup", "0::/\n".into()),
        ("8/stat", stat("neighbour", &[(14, at(0, 100)), (22, 60)])),
        ("self/mountinfo", mounts.into()),
        (
            "stat",
            format!(
                "cpu  {} 0 0 {} 0 0 0 {}\ncpu0 1\ncpu1 1\nprocs_running 3\n",
                at(0, 400),
                at(0, 200),
                at(0, 200)
            ),
        ),
        ("loadavg", "0.5 1 2 1/2 3\n".into()),
        ("meminfo", "MemTotal:   10 kB\nMemAvailable:  5 kB\n".into()),
        ("vmstat", format!("pswpin {}\noom_kill 3\n", at(10, 30))),
        ("pressure/cpu", format!("some total={}\n", at(0, 500_000))),
        ("sys/kernel/task_delayacct", "0\n".into()),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, &**text)).collect();
    TestTree::new(name, &files)
}

fn read(tree: &TestTree) -> ProcessUsage {
    UsageReader::new().proc(tree.path()).read(7).unwrap()
}

fn change() -> UsageChange {
    let first = read(&tree("change-1", false));
    let mut second = read(&tree("change-2", true));
    second.at = first.at + Duration::from_secs(2);
    UsageChange::between(&first, &second).unwrap()
}

#[test]
fn a_reading_has_the_files_of_the_process_and_of_the_machine() {
    let usage = read(&tree("reading", false));
    assert_eq!((&*usage.name, usage.state, usage.start_ticks), ("shop", Some('S'), Some(40)));
    assert_eq!((usage.minor_faults, usage.major_faults), (Some(1), Some(2)));
    let names: Vec<_> = usage.threads.iter().map(|thread| (thread.tid, &*thread.name)).collect();
    assert_eq!((names, usage.thread_count), (vec![(7, "shop"), (11, "a) R (b")], Some(2)));
    // The second thread has no schedstat: its time is the one of stat.
    let second = &usage.threads[1];
    assert_eq!((second.cpu_ns, second.run_queue_ns, second.io_delay_ns), (Some(100 * TICK_NS), None, None));
    assert_eq!(usage.memory.map(|memory| (memory.resident, memory.swap)), Some((Some(2 << 20), None)));
    let io = usage.io.unwrap();
    assert_eq!((io.read_by_calls, io.written_by_calls, io.read_from_disk), (Some(1000), Some(7), None));
    assert_eq!((usage.oom_score, usage.oom_score_adjustment), (Some(667), Some(-5)));
    assert_eq!((usage.allowed_processors, usage.usable_processors()), (Some(4), Some(4.0)));
    let machine = &usage.machine;
    assert_eq!(
        (machine.processors, machine.runnable, machine.load),
        (Some(2), Some(3), Some([0.5, 1.0, 2.0]))
    );
    assert_eq!(machine.memory.map(|memory| memory.available), Some(Some(5 << 10)));
    let others: Vec<_> =
        machine.other_processes.iter().map(|process| (process.pid, &*process.name)).collect();
    assert_eq!(others, [(8, "neighbour")]);
    let unread: Vec<_> =
        usage.unread.iter().map(|file| file.path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!((unread, usage.descriptors), (vec!["memory", "io", "fd"], None));
}

#[test]
#[allow(clippy::float_cmp, reason = "exact in binary")]
fn a_change_has_rates_and_shares_of_time() {
    let change = change();
    // 2 s of user and 1 s of kernel mode in 2 s, on 4 processors.
    let cpu = change.cpu;
    assert_eq!((cpu.user_cores, cpu.system_cores, cpu.cores), (Some(1.0), Some(0.5), Some(1.5)));
    assert_eq!((cpu.share_of_usable, cpu.run_queue), (Some(0.375), Some(0.25)));
    // The first thread ran for 1 s and waited for 0.5 s.
    assert!(cpu.run_queue_share.is_some_and(|share| (share - 1.0 / 3.0).abs() < 1e-9), "{cpu:?}");
    assert_eq!((change.minor_faults_per_second, change.major_faults_per_second), (Some(2.0), Some(3.0)));
    assert_eq!((change.memory.resident, change.memory.swap), (Some(-(1 << 20)), None));
    assert_eq!((change.bytes_read_per_second, change.disk_bytes_read_per_second), (Some(2000.0), None));
    let machine = change.machine;
    assert_eq!((machine.cores, machine.other_cores), (Some(2.0), Some(0.5)));
    assert_eq!((machine.user, machine.idle, machine.steal), (Some(0.5), Some(0.25), Some(0.25)));
    assert_eq!((machine.swapped_in_pages_per_second, machine.oom_kills), (Some(10.0), Some(0)));
    assert_eq!((machine.pressure.cpu_some, machine.pressure.io_some), (Some(0.25), None));
    let busiest: Vec<_> = machine.busiest.iter().map(|(process, cores)| (&*process.name, *cores)).collect();
    assert_eq!(busiest, [("neighbour", 0.5)]);
}

#[test]
fn threads_that_start_and_end_are_counted() {
    let change = change();
    assert_eq!((change.started_threads, change.ended_threads, change.thread_growth), (1, 1, Some(0)));
    let top =
        |threads: Vec<&ThreadChange>| -> Vec<_> { threads.iter().map(|it| (it.tid, it.is_new)).collect() };
    // Both ran for half of the time; the new one since its start.
    assert_eq!(top(change.top_by_cpu(5)), [(7, false), (12, true)]);
    assert_eq!(
        (top(change.top_by_cpu(1)), top(change.top_by_run_queue(5))),
        (vec![(7, false)], vec![(7, false)])
    );
}

#[test]
fn a_thread_that_the_first_reading_left_out_is_not_a_new_one() {
    let trees = (tree("limit-1", false), tree("limit-2", true));
    let first = UsageReader::new().proc(trees.0.path()).max_threads(1).read(7).unwrap();
    assert_eq!((first.threads.len(), first.has_all_threads, first.thread_count), (1, false, Some(2)));
    let mut second = read(&trees.1);
    second.at = first.at + Duration::from_secs(2);
    let change = UsageChange::between(&first, &second).unwrap();
    assert_eq!((change.threads.len(), change.started_threads, change.ended_threads), (1, 0, 0));
    // Without time, nothing but the process itself is read.
    let late = UsageReader::new().proc(trees.0.path()).max_time(Duration::ZERO).read(7).unwrap();
    assert_eq!((late.threads.len(), late.has_all_threads), (0, false));
    assert_eq!((late.machine.other_processes.len(), late.machine.has_all_processes), (0, false));
}

#[test]
fn other_processes_and_readings_in_wrong_order_are_not_compared() {
    let first = read(&tree("pairs", false));
    let later =
        |usage: &ProcessUsage| ProcessUsage { at: usage.at + Duration::from_secs(1), ..usage.clone() };
    assert!(UsageChange::between(&first, &later(&first)).is_some());
    assert!(UsageChange::between(&first, &first).is_none());
    assert!(UsageChange::between(&later(&first), &first).is_none());
    let restarted = ProcessUsage { start_ticks: Some(41), ..later(&first) };
    assert!(UsageChange::between(&first, &restarted).is_none());
}

#[test]
fn counts_that_go_back_are_not_rates() {
    let (first, second) = (read(&tree("back-1", true)), read(&tree("back-2", false)));
    let second = ProcessUsage { at: first.at + Duration::from_secs(2), ..second };
    let change = UsageChange::between(&first, &second).unwrap();
    assert_eq!(
        (change.cpu.cores, change.major_faults_per_second, change.bytes_read_per_second),
        (None, None, None)
    );
    assert_eq!((change.memory.resident, change.machine.busiest), (Some(1 << 20), vec![]));
}

#[test]
fn a_process_that_ends_meanwhile_has_what_was_read() {
    let none = UsageReader::new().proc("/nowhere").read(7).unwrap_err();
    assert_eq!(none.kind(), io::ErrorKind::NotFound);
    // Only the first file was there in time.
    let tree = TestTree::new("ends", &[("7/stat", &stat("shop", &[(14, 3), (22, 40)]))]);
    let usage = read(&tree);
    assert_eq!((usage.user_ns, usage.threads.len(), usage.has_all_threads), (Some(3 * TICK_NS), 0, false));
    assert_eq!((usage.memory, usage.group, usage.usable_processors()), (None, None, None));
    let later = ProcessUsage { at: usage.at + Duration::from_secs(1), ..usage.clone() };
    let change = UsageChange::between(&usage, &later).unwrap();
    assert_eq!((change.cpu.cores, change.cpu.run_queue_share, change.machine.cores), (Some(0.0), None, None));
}

#[test]
fn hostile_files_are_no_values() {
    let junk =
        [&b""[..], b"\xff\xfe", b"\n\n\n", b": : :", b"18446744073709551616", b"0 kB\0", b"some total=-1"];
    for bytes in junk {
        let tree = tree("hostile", false);
        for file in [
            "7/status",
            "7/task/7/stat",
            "7/task/7/schedstat",
            "7/limits",
            "7/io",
            "7/oom_score",
            "7/cgroup",
            "8/stat",
        ] {
            tree.write(file, bytes);
        }
        for file in ["stat", "loadavg", "meminfo", "vmstat", "pressure/cpu", "self/mountinfo"] {
            tree.write(file, bytes);
        }
        let usage = read(&tree);
        assert_eq!((usage.memory, usage.allowed_processors, usage.threads.len()), (None, None, 1));
        assert_eq!((usage.machine.cpu, usage.machine.load, usage.machine.processors), (None, None, None));
        assert!(usage.machine.other_processes.is_empty());
        tree.write("7/stat", bytes);
        let error = UsageReader::new().proc(tree.path()).read(7).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

#[test]
#[allow(clippy::float_cmp, reason = "exact in binary")]
fn the_quota_of_a_group_limits_the_processors() {
    let reading = |name: &str, is_second: bool| {
        let tree = tree(name, is_second);
        let at = |first: u64, second: u64| if is_second { second } else { first };
        let throttled = at(0, 1_000_000);
        let cpu = format!(
            "usage_usec {}\nnr_periods {}\nnr_throttled {}\nthrottled_usec {throttled}\n",
            at(0, 1_000_000),
            at(0, 20),
            at(1, 16)
        );
        let events = format!("high 0\nmax {}\noom 0\noom_kill {}\n", at(10, 50), at(0, 1));
        for (path, text) in [
            ("self/mountinfo", tree.mounts(&[("/", "group", "cgroup2", "rw")])),
            ("7/cgroup", "0::/app\n".into()),
            ("group/app/cpu.max", "50000 100000\n".into()),
            ("group/app/cpu.stat", cpu),
            ("group/app/memory.current", at(900, 1000).to_string()),
            ("group/app/memory.max", "1024\n".into()),
            ("group/app/memory.stat", "inactive_file 0\n".into()),
            ("group/app/memory.events", events),
            ("group/app/cpu.pressure", format!("some total={throttled}\nfull total=0\n")),
        ] {
            tree.write(path, text.as_bytes());
        }
        read(&tree)
    };
    let first = reading("quota-1", false);
    let second = ProcessUsage { at: first.at + Duration::from_secs(2), ..reading("quota-2", true) };
    let group = second.group.unwrap();
    assert_eq!((group.quota(), second.usable_processors()), (Some(0.5), Some(0.5)));
    assert_eq!(group.memory.and_then(|memory| memory.limited), Some((1000, 1024)));
    let change = UsageChange::between(&first, &second).unwrap().group;
    let throttling = change.throttling.unwrap();
    assert_eq!((throttling.periods, throttling.throttled_periods), (20, 15));
    assert_eq!((throttling.share_of_periods, throttling.throttled_processors), (Some(0.75), 0.5));
    assert_eq!((change.cores, change.memory, change.oom_kills), (Some(0.5), Some(100), Some(1)));
    assert_eq!(
        (change.memory_limit_hits_per_second, change.memory_high_hits_per_second),
        (Some(20.0), Some(0.0))
    );
    assert_eq!((change.pressure.cpu_some, change.pressure.cpu_full), (Some(0.5), Some(0.0)));
    assert_eq!(change.pressure.io_some, None);
}

#[test]
#[cfg(unix)]
fn descriptors_are_counted_by_kind() {
    use std::os::unix::fs::symlink;

    let tree = tree("descriptors", false);
    let row = "0: 0100007F:07E8 0100007F:1F90 08 00000000:00000003 00:00000000 00000000 0 0 77 1\n";
    tree.write("7/net/tcp", row.as_bytes());
    tree.write("7/fd/none", b"");
    for (name, target) in
        [("0", "/dev/null"), ("1", "socket:[77]"), ("2", "socket:[78]"), ("3", "/a"), ("4", "/b")]
    {
        symlink(target, tree.path().join("7/fd").join(name)).unwrap();
    }
    let first = read(&tree);
    let descriptors = first.descriptors.clone().unwrap();
    assert_eq!((descriptors.count, descriptors.limit), (6, Some(1024)));
    let kinds = [(DescriptorKind::File, 2), (DescriptorKind::Device, 1), (DescriptorKind::Socket, 2)];
    assert_eq!(descriptors.kinds, kinds.into());
    let sockets = descriptors.sockets.unwrap();
    assert_eq!((sockets.tcp, sockets.other), ([(TcpState::CloseWait, 1)].into(), 1));
    std::fs::remove_file(tree.path().join("7/fd/0")).unwrap();
    for number in 5..9 {
        symlink("pipe:[9]", tree.path().join(format!("7/fd/{number}"))).unwrap();
    }
    symlink("/b", tree.path().join("7/fd/0")).unwrap();
    let second = ProcessUsage { at: first.at + Duration::from_secs(1), ..read(&tree) };
    assert_eq!(second.descriptors.as_ref().unwrap().most_open, [("/b".into(), 2)]);
    let change = UsageChange::between(&first, &second).unwrap();
    assert_eq!(change.descriptor_growth, Some(4));
    assert_eq!(
        change.descriptor_kind_growth,
        [(DescriptorKind::File, 1), (DescriptorKind::Device, -1), (DescriptorKind::Pipe, 4)].into()
    );
}

#[test]
#[cfg(target_os = "linux")]
fn reads_this_process() {
    let reader = UsageReader::new().mapped_memory(true);
    let first = reader.read(std::process::id()).unwrap();
    assert!(first.memory.unwrap().resident > Some(0) && first.mapped_memory.unwrap().proportional > Some(0));
    assert!(first.threads.iter().any(|thread| thread.cpu_ns.is_some()), "{first:?}");
    assert!(first.descriptors.as_ref().unwrap().count > 0 && first.usable_processors() > Some(0.0));
    let second = reader.read(std::process::id()).unwrap();
    let change = UsageChange::between(&first, &second).unwrap();
    assert!(change.cpu.cores >= Some(0.0), "{change:?}");
}
