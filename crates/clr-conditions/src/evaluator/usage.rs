//! The evaluation of values of the system, which are separate from events.

use nettrace::RelativeTime;

use super::{AtomState, Atoms, Evaluator, Match, bit, duration_text};
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
            let Atom::System { value, comparison, bound, lasting } = atom else { continue };
            let current = usage.value(*value);
            let is_met = |current: &f64| comparison.is_met(current.partial_cmp(bound));
            let passed = state.last_value.replace(time).map(|last| time.saturating_duration_since(last));
            let Some(current) = current.filter(is_met) else {
                (state.lasts, state.met, state.beyond) = (false, None, None);
                continue;
            };
            let before = state.beyond.map(|beyond| beyond.saturating_add(passed.unwrap_or_default()));
            let beyond = *state.beyond.insert(before.unwrap_or_default());
            if beyond < *lasting {
                continue;
            }
            let was_met = std::mem::replace(&mut state.lasts, true);
            state.met = Some(time);
            state.what = value.text(current);
            if !lasting.is_zero() {
                state.what.push_str(" for ");
                state.what.push_str(&duration_text(beyond));
            }
            changed |= if was_met { 0 } else { bit(number) };
        }
        if let Some(met) = self.atoms.fire(time, changed) {
            each(met);
        }
    }

    /// Forgets all events: another session has taken the place of the last one. Values of the system that
    /// meet their conditions still do.
    pub fn restart(&mut self) {
        let condition = self.atoms.condition.clone();
        let former = std::mem::replace(self, Self::new(condition));
        let Atoms { condition, states } = &mut self.atoms;
        for ((state, former), atom) in states.iter_mut().zip(former.atoms.states).zip(&condition.atoms) {
            if matches!(atom, Atom::System { .. }) {
                // Times of the next session have another beginning.
                *state = AtomState { last_value: None, ..former };
            }
        }
    }
}
