//! Searches for processes that are left out while none begins or ends.

/// The number of searches without a change after which some are left out: a runtime has its socket a moment
/// after its process begins.
const SETTLED: u32 = 5;
/// Of the searches after that, each of this number takes place: a process can become another program.
const RARE: u32 = 4;

/// The processes at the last search.
#[derive(Debug, Default)]
pub(super) struct SearchPause {
    pids: Vec<u32>,
    /// The number of searches, or left out ones, since they have changed.
    unchanged: u32,
}

impl SearchPause {
    /// Returns true if a search is to take place, with the processes that exist; `None` if they are not
    /// known.
    pub(super) fn is_due(&mut self, pids: Option<Vec<u32>>) -> bool {
        match pids {
            Some(pids) if pids == self.pids => {
                self.unchanged = self.unchanged.saturating_add(1);
                self.unchanged <= SETTLED || self.unchanged.is_multiple_of(RARE)
            }
            pids => {
                *self = Self { pids: pids.unwrap_or_default(), unchanged: 0 };
                true
            }
        }
    }

    /// Lets the next search take place.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_are_rare_while_no_process_begins_or_ends() {
        let mut pause = SearchPause::default();
        let mut looks = |pids: Option<&[u32]>, times: u32| {
            (0..times).filter(|_| pause.is_due(pids.map(<[u32]>::to_vec))).count()
        };
        assert_eq!(looks(Some(&[1, 7]), 1 + SETTLED), 6);
        assert_eq!(looks(Some(&[1, 7]), 10 * RARE), 10);
        for pids in [&[1, 7, 8][..], &[1, 8], &[]] {
            assert_eq!(looks(Some(pids), 1 + SETTLED), 6);
        }
        assert_eq!(looks(None, 100), 100);
        assert_eq!(looks(Some(&[1]), 1 + SETTLED), 6);
        assert_eq!(looks(Some(&[1]), 2), 0);
        pause.reset();
        assert!(pause.is_due(Some(vec![1])));
    }
}
