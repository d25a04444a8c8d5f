//! Rounds of the sampler.
//!
//! About each millisecond the sampler stops all threads of its process and takes the stacks of threads with
//! managed frames. A thread that is not among them does not run managed code: a finalizer that waits in the
//! runtime, a thread that has ended.

use hashbrown::HashMap;
use nettrace::RelativeTime;

/// The rounds of each process, and the threads that were absent from one.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    processes: HashMap<Option<u64>, Round>,
    /// By thread.
    threads: Vec<Presence>,
}

/// The current round of a process, possibly incomplete.
#[derive(Debug)]
struct Round {
    /// Rounds count from 1.
    number: u64,
    /// The time of its first sample.
    start: RelativeTime,
    /// The threads that were sampled in it.
    sampled: Vec<u32>,
    /// The threads of the round before it.
    before: Vec<u32>,
}

/// The presence of a thread in rounds.
#[derive(Debug, Clone, Copy, Default)]
struct Presence {
    /// The last round that it was in.
    round: u64,
    /// The start of the first round since then that it was not in.
    absent_from: Option<RelativeTime>,
}

impl Rounds {
    /// Adds a sample of a thread. A thread that is sampled again begins a new round.
    pub(super) fn add(&mut self, process: Option<u64>, thread: u32, now: RelativeTime) {
        let index = thread as usize;
        if self.threads.len() <= index {
            self.threads.resize(index.saturating_add(1), Presence::default());
        }
        let round = self.processes.entry(process).or_insert_with(|| Round {
            number: 1,
            start: now,
            sampled: Vec::new(),
            before: Vec::new(),
        });
        if self.threads.get(index).is_some_and(|presence| presence.round == round.number) {
            for thread in round.before.drain(..) {
                if let Some(presence) = self.threads.get_mut(thread as usize)
                    && presence.round < round.number
                {
                    presence.absent_from.get_or_insert(round.start);
                }
            }
            std::mem::swap(&mut round.before, &mut round.sampled);
            round.number = round.number.saturating_add(1);
            round.start = now;
        }
        if let Some(presence) = self.threads.get_mut(index) {
            presence.round = round.number;
            round.sampled.push(thread);
        }
    }

    /// Takes the time since which a thread, which was just sampled, had been absent; `None` if it was in
    /// every round since its last sample.
    pub(super) fn take_absence(&mut self, thread: u32) -> Option<RelativeTime> {
        self.threads.get_mut(thread as usize)?.absent_from.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absences(samples: &[(i64, u32)]) -> Vec<(i64, u32, i64)> {
        let mut rounds = Rounds::default();
        let mut found = Vec::new();
        for (time, thread) in samples {
            rounds.add(None, *thread, RelativeTime::from_nanos(*time));
            if let Some(from) = rounds.take_absence(*thread) {
                found.push((*time, *thread, from.as_nanos()));
            }
        }
        found
    }

    #[test]
    fn a_thread_that_a_round_lacks_is_absent_from_its_start() {
        // Thread 2 is in the rounds at 0 and 10, not in the rounds at 20 and 30.
        let samples =
            [(0, 1), (1, 2), (10, 1), (11, 2), (20, 1), (21, 3), (30, 1), (31, 3), (40, 1), (41, 2), (50, 1)];
        assert_eq!(absences(&samples), [(41, 2, 20)]);
    }

    #[test]
    fn threads_that_are_in_every_round_are_never_absent() {
        let samples: Vec<_> = (0..100).map(|at| (at * 10, u32::try_from(at % 3).unwrap())).collect();
        assert_eq!(absences(&samples), []);
    }

    #[test]
    fn processes_have_rounds_of_their_own() {
        let mut rounds = Rounds::default();
        for at in 0..10 {
            rounds.add(Some(1), 0, RelativeTime::from_nanos(at * 10));
            if at % 5 == 0 {
                rounds.add(Some(2), 1, RelativeTime::from_nanos(at * 10));
            }
            assert_eq!((rounds.take_absence(0), rounds.take_absence(1)), (None, None));
        }
    }
}
