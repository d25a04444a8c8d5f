//! The evaluation of values of the system, which are separate from events.

use nettrace::RelativeTime;

use super::{Atoms, Evaluator, Match, bit};
use crate::condition::Atom;
use crate::system::SystemUsage;

impl Evaluator {
    /// Adds values of the system, and passes the match that they complete to `each`. `time` is the best known
    /// time of the stream.
    ///
    /// ```
    /// use clr_conditions::{Condition, Evaluator, SystemUsage};
    /// use nettrace::RelativeTime;
    ///
    /// let mut evaluator = Evaluator::new(Condition::parse_for_rules("process memory > 500MB")?);
    /// let usage = SystemUsage { process_memory_bytes: Some(600_000_000), ..SystemUsage::default() };
    /// let mut matches = 0;
    /// // Once for each stretch beyond the bound.
    /// evaluator.usage(&usage, RelativeTime::START, |_| matches += 1);
    /// evaluator.usage(&usage, RelativeTime::START, |_| matches += 1);
    /// assert_eq!(matches, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn usage(&mut self, usage: &SystemUsage, time: RelativeTime, mut each: impl FnMut(Match)) {
        let mut changed = 0;
        let Atoms { condition, states } = &mut self.atoms;
        for ((number, state), atom) in (0..).zip(states).zip(&condition.atoms) {
            let Atom::System(value, comparison, bound) = atom else { continue };
            let current = usage.value(*value);
            let met = current.filter(|current| comparison.is_met(current.partial_cmp(bound)));
            if let Some(current) = met {
                let was_met = std::mem::replace(&mut state.lasts, true);
                state.met = Some(time);
                state.what = value.text(current);
                changed |= if was_met { 0 } else { bit(number) };
            } else {
                state.lasts = false;
                state.met = None;
            }
        }
        if let Some(met) = self.atoms.fire(time, changed) {
            each(met);
        }
    }

    /// Forgets all events: another session has taken the place of the last one. Values of the system that meet
    /// their conditions still do.
    pub fn restart(&mut self) {
        let condition = self.atoms.condition.clone();
        let former = std::mem::replace(self, Self::new(condition));
        let Atoms { condition, states } = &mut self.atoms;
        for ((state, former), atom) in states.iter_mut().zip(former.atoms.states).zip(&condition.atoms) {
            if matches!(atom, Atom::System(..)) {
                *state = former;
            }
        }
    }
}
