//! Processor time of the threads of a process, read repeatedly.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use linux_proc_stat::{SchedStat, Stat, Status};

/// Reads the processor time of each thread of a process. Only Linux shows it.
#[derive(Debug)]
pub struct ThreadTimesReader {
    /// The process's folder in `/proc`.
    folder: PathBuf,
    /// The threads, by id in this process's pid namespace.
    known: HashMap<u32, KnownThread>,
    rounds: u64,
}

/// A thread, as of the last round.
#[derive(Debug)]
struct KnownThread {
    id: u64,
    ran: u64,
    queued: u64,
    round: u64,
}

/// The threads of a process that changed since the previous round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadTimes {
    /// The processor time of the process in nanoseconds, including threads that have ended; to 10 ms.
    pub process: Option<u64>,
    /// The number of threads.
    pub count: usize,
    /// Threads that ran, and new threads.
    pub changed: Vec<ThreadTime>,
    /// The numbers of threads that have ended, as the process sees them.
    pub ended: Vec<u64>,
}

/// The processor time of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadTime {
    /// The thread id as the process itself sees it.
    pub id: u64,
    /// Nanoseconds on a processor since its start.
    pub ran: u64,
    /// Nanoseconds during which it was runnable without a processor.
    pub queued: u64,
    /// The kernel's letter for its state.
    pub state: char,
    /// The function of the kernel in which it sleeps; empty if that is not shown.
    pub wait_channel: String,
    /// The name of the thread.
    pub name: String,
}

impl ThreadTimesReader {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, known: HashMap::new(), rounds: 0 }
    }

    /// Reads the times of all threads. A thread that did not run since the last round costs reading one file.
    ///
    /// # Errors
    /// If the system does not show them: not Linux, no such process, or no permission.
    pub fn read(&mut self) -> io::Result<ThreadTimes> {
        let mut times = ThreadTimes { process: self.process_time(), ..ThreadTimes::default() };
        self.rounds = self.rounds.saturating_add(1);
        for task in fs::read_dir(self.folder.join("task"))?.flatten() {
            let Some(number) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // Threads may end meanwhile.
            self.read_thread(number, &task.path(), &mut times);
        }
        let round = self.rounds;
        let ended = self.known.extract_if(|_, thread| thread.round != round).map(|(_, thread)| thread.id);
        times.ended.extend(ended);
        times.ended.sort_unstable();
        Ok(times)
    }

    fn read_thread(&mut self, number: u32, folder: &Path, times: &mut ThreadTimes) -> Option<()> {
        let file = |name: &str| linux_proc_stat::read(&folder.join(name)).ok();
        let mut stat = None;
        let (ran, queued) = match SchedStat::parse(&file("schedstat")?) {
            Some(times) => (times.cpu_ns, times.queue_ns),
            None => (Stat::parse(stat.insert(file("stat")?))?.cpu_ns()?, 0),
        };
        times.count += 1;
        let before = self.known.get_mut(&number);
        if let Some(before) = before.filter(|before| (before.ran, before.queued) == (ran, queued)) {
            before.round = self.rounds;
            return Some(());
        }
        let id = match self.known.get(&number) {
            Some(known) if known.ran <= ran => known.id,
            _ => Status::new(&file("status")?).innermost_id()?.into(),
        };
        let stat = match stat {
            Some(stat) => stat,
            None => file("stat")?,
        };
        let stat = Stat::parse(&stat)?;
        let wait_channel = file("wchan").filter(|channel| channel != b"0").unwrap_or_default();
        self.known.insert(number, KnownThread { id, ran, queued, round: self.rounds });
        times.changed.push(ThreadTime {
            id,
            ran,
            queued,
            state: stat.state()?,
            wait_channel: String::from_utf8_lossy(&wait_channel).into_owned(),
            name: String::from_utf8_lossy(stat.name()).into_owned(),
        });
        Some(())
    }

    fn process_time(&self) -> Option<u64> {
        Stat::parse(&linux_proc_stat::read(&self.folder.join("stat")).ok()?)?.cpu_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, thread: u32, schedstat: &str, ticks: u32) {
        let folder = folder.join("task").join(thread.to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("schedstat"), schedstat).unwrap();
        let stat = format!("{thread} (a) (b) S 1 2 3 4 5 6 7 8 9 10 {ticks} 1 0 0 20\n");
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("status"), format!("Name:\ta) (b\nNSpid:\t{thread}\t{}\n", thread - 100))
            .unwrap();
        fs::write(folder.join("wchan"), "futex_do_wait").unwrap();
    }

    #[test]
    fn rounds_have_only_changed_threads() {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = ThreadTimesReader::new(folder.path().to_path_buf());
        assert!(reader.read().is_err(), "no list of threads");
        write(folder.path(), 107, "500 60 7\n", 0);
        write(folder.path(), 108, "900 10 2\n", 0);
        fs::write(folder.path().join("stat"), "107 (a) S 1 2 3 4 5 6 7 8 9 10 30 12 0\n").unwrap();
        let mut first = reader.read().unwrap();
        first.changed.sort_by_key(|thread| thread.id);
        let thread = |id, ran, queued| ThreadTime {
            id,
            ran,
            queued,
            state: 'S',
            wait_channel: "futex_do_wait".to_owned(),
            name: "a) (b".to_owned(),
        };
        assert_eq!(first.changed, [thread(7, 500, 60), thread(8, 900, 10)]);
        assert_eq!((first.process, first.count), (Some(420_000_000), 2));
        write(folder.path(), 108, "950 10 3\n", 0);
        let second = reader.read().unwrap();
        assert_eq!((second.changed, second.count), (vec![thread(8, 950, 10)], 2));
        fs::remove_dir_all(folder.path().join("task/107")).unwrap();
        let third = reader.read().unwrap();
        assert_eq!((third.changed, third.ended, third.count), (vec![], vec![7], 1));
    }

    #[test]
    fn kernels_that_do_not_count_are_asked_for_coarser_times() {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = ThreadTimesReader::new(folder.path().to_path_buf());
        write(folder.path(), 107, "0 0 0\n", 24);
        let times = reader.read().unwrap();
        assert_eq!((times.changed[0].ran, times.process), (250_000_000, None));
        // A thread without any of these files is skipped.
        fs::create_dir_all(folder.path().join("task/109")).unwrap();
        assert_eq!(reader.read().unwrap().count, 1);
    }
}
