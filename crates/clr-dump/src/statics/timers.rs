//! Timers that have not fired, or fire again.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Threading/Timer.cs` (`TimerQueue`, `TimerQueueTimer`);
//! for 3.1 dotnet/coreclr `src/System.Private.CoreLib/shared/System/Threading/Timer.cs`, with the same names
//! of fields.

use std::time::Duration;

use crate::heap::object::{ObjectContent, Value};
use crate::memory::address::Address;
use crate::statics::Statics;

/// Maximum number of queues: one for each processor.
const MAX_QUEUES: u32 = 64;

/// The timers of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveTimers {
    /// The number of timers that have not fired, or fire again.
    pub count: u64,
    /// The callbacks of the newest, which are delegates.
    pub callbacks: Vec<Address>,
}

/// Timers that were due before a time, and have not fired.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LateTimers {
    /// The number of those that are late.
    pub count: u64,
    /// The time since the first of them was due.
    pub most: Duration,
    /// Their callbacks, which are delegates.
    pub callbacks: Vec<Address>,
}

impl Statics<'_> {
    /// Returns the timers: the number of all, and from each queue the callbacks of the newest ones, at most
    /// `max` of each of its two lists. `None` if the memory lacks the queues.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for callback in dump.statics().timers(10).unwrap_or_default().callbacks {
    ///     println!("{:?}", dump.heap().delegate_method(callback).and_then(|method| method.name));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timers(self, max: usize) -> Option<ActiveTimers> {
        let heap = self.dump.heap();
        let mut timers = ActiveTimers::default();
        for queue in self.timer_queues()? {
            if let Some(Value::Signed(count)) = heap.field_value(queue, "<ActiveCount>k__BackingField") {
                timers.count = timers.count.saturating_add(u64::try_from(count).unwrap_or_default());
            }
            for list in ["_longTimers", "_shortTimers"] {
                // New timers are put first.
                let mut timer = self.reference(queue, list);
                for _ in 0..max {
                    let Some(of) = timer else { break };
                    timers.callbacks.extend(self.reference(of, "_timerCallback"));
                    timer = self.reference(of, "_next");
                }
            }
        }
        Some(timers)
    }

    /// Returns the timers that were due for at least `late` at the time `now` of the system's monotonic
    /// clock, as the process has it, of at most `max` of each queue: a thread of the pool runs them, if it
    /// has one. `None` if the memory lacks the queues.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// # let now = Duration::from_secs(4711);
    /// let late = dump.statics().late_timers(now, Duration::from_millis(500), 100).unwrap_or_default();
    /// println!("{} timers are late, the first by {:?}", late.count, late.most);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn late_timers(self, now: Duration, late: Duration, max: usize) -> Option<LateTimers> {
        let heap = self.dump.heap();
        let number = |object: Address, field: &str| match heap.field_value(object, field) {
            Some(Value::Signed(number)) => u64::try_from(number).ok(),
            Some(Value::Unsigned(number)) => Some(number),
            _ => None,
        };
        let mut timers = LateTimers::default();
        for queue in self.timer_queues()? {
            // Timers that are due soon are in this list.
            let mut timer = self.reference(queue, "_shortTimers");
            for _ in 0..max {
                let Some(of) = timer else { break };
                timer = self.reference(of, "_next");
                let (Some(start), Some(due)) = (number(of, "_startTicks"), number(of, "_dueTime")) else {
                    continue;
                };
                let is_active = due != u64::from(u32::MAX);
                let due = Duration::from_millis(start.saturating_add(due));
                let Some(by) = now.checked_sub(due).filter(|by| is_active && *by >= late) else { continue };
                timers.count = timers.count.saturating_add(1);
                timers.most = timers.most.max(by);
                timers.callbacks.extend(self.reference(of, "_timerCallback"));
            }
        }
        Some(timers)
    }

    fn reference(self, object: Address, field: &str) -> Option<Address> {
        match self.dump.heap().field_value(object, field) {
            Some(Value::Reference { address, .. }) => Some(address),
            _ => None,
        }
    }

    fn timer_queues(self) -> Option<Vec<Address>> {
        let heap = self.dump.heap();
        let (array, _) =
            self.core_library_field("System.Threading.TimerQueue", "<Instances>k__BackingField")?;
        let ObjectContent::Array { elements, .. } = heap.content(&heap.object_at(array)?, MAX_QUEUES).ok()?
        else {
            return None;
        };
        let queue = |value: Value| match value {
            Value::Reference { address, .. } => Some(address),
            _ => None,
        };
        Some(elements.into_iter().filter_map(queue).collect())
    }
}
