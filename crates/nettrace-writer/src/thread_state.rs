//! The numbers that a thread's events have in the new recording.

/// The sequence numbers of a thread: in the source recording, and in the new recording.
///
/// A gap in the numbers is a loss. Events that are left out on purpose leave no gap: their count is
/// subtracted from later numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ThreadState {
    /// V6: the index in the new recording; 0 before the thread is described there.
    pub(crate) index: u64,
    /// The difference of the two numbers.
    removed: u32,
    last_read: u32,
    last_written: u32,
}

impl ThreadState {
    /// Takes the number of the next event that was read. A number that goes backwards belongs to another
    /// thread with the same id.
    fn read(&mut self, sequence: u32) {
        if sequence.wrapping_sub(self.last_read).cast_signed() <= 0 {
            self.removed = 0;
        }
        self.last_read = sequence;
    }

    /// Returns the number of a written event; `None` if the recording has no numbers.
    #[inline]
    pub(crate) fn write(&mut self, sequence: Option<u32>) -> u32 {
        let written = match sequence {
            Some(sequence) => {
                self.read(sequence);
                sequence.wrapping_sub(self.removed)
            }
            None => self.last_written.wrapping_add(1),
        };
        self.last_written = written;
        written
    }

    /// Continues the numbers of the same thread in another recording.
    pub(crate) const fn go_on_from(&mut self, last_written: u32) {
        self.last_written = last_written;
    }

    /// Continues the numbers of the same thread in a part with numbers that begin anew.
    pub(crate) const fn continue_from(&mut self, last_written: u32) {
        self.removed = 0_u32.wrapping_sub(last_written);
        self.last_read = 0;
        self.last_written = last_written;
    }

    /// Leaves an event out. Losses before it remain losses.
    pub(crate) fn remove(&mut self, sequence: Option<u32>) {
        if let Some(sequence) = sequence {
            self.read(sequence);
            self.removed = self.removed.wrapping_add(1);
        }
    }

    /// Leaves out everything up to a number, losses too.
    pub(crate) fn skip_to(&mut self, sequence: Option<u32>) {
        if let Some(sequence) = sequence {
            self.last_read = sequence;
            self.removed = sequence.wrapping_sub(self.last_written);
        }
    }

    /// Returns the number in the new recording for that of a sequence point or of the thread's end.
    pub(crate) fn up_to(&mut self, sequence: u32) -> u32 {
        if sequence.wrapping_sub(self.last_read).cast_signed() < 0 {
            self.removed = 0;
        }
        self.last_read = sequence;
        let written = sequence.wrapping_sub(self.removed);
        self.last_written = written;
        written
    }

    /// Returns true if the number belongs to a later event than the last event read: the events up to it were
    /// lost.
    pub(crate) const fn is_behind(&self, sequence: u32) -> bool {
        sequence != self.last_read
    }

    /// The number of the last event that was read.
    pub(crate) const fn last_read(&self) -> u32 {
        self.last_read
    }

    /// The number of the last event, including lost events.
    pub(crate) const fn last_written(&self) -> u32 {
        self.last_written
    }
}

#[cfg(test)]
mod tests {
    use super::ThreadState;

    #[test]
    fn losses_stay_and_removed_events_leave_no_gap() {
        let mut thread = ThreadState::default();
        assert_eq!(thread.write(Some(1)), 1);
        thread.remove(Some(2));
        assert_eq!(thread.write(Some(3)), 2);
        // 4 and 5 were lost.
        thread.remove(Some(6));
        assert_eq!(thread.write(Some(7)), 5);
        assert_eq!(thread.up_to(9), 7);
    }

    #[test]
    fn skipped_events_keep_their_losses() {
        let mut thread = ThreadState::default();
        thread.skip_to(Some(5));
        assert_eq!(thread.write(Some(6)), 1);
        thread.skip_to(Some(10));
        assert_eq!(thread.up_to(12), 3);
    }

    #[test]
    fn a_number_given_to_another_thread_begins_again() {
        let mut thread = ThreadState::default();
        assert_eq!(thread.write(Some(1)), 1);
        thread.remove(Some(2));
        assert_eq!(thread.write(Some(1)), 1);
        assert_eq!(thread.write(Some(2)), 2);
    }

    #[test]
    fn events_without_numbers_are_counted() {
        let mut thread = ThreadState::default();
        assert_eq!([thread.write(None), thread.write(None)], [1, 2]);
        thread.remove(None);
        assert_eq!(thread.write(None), 3);
    }
}
