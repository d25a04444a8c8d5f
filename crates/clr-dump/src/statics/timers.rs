//! Timers that have not fired, or fire again.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Threading/Timer.cs` (`TimerQueue`, `TimerQueueTimer`);
//! for 3.1 dotnet/coreclr `src/System.Private.CoreLib/shared/System/Threading/Timer.cs`, with the same names
//! of fields.

use std::time::Duration;

use crate::heap::object::{ObjectContent, Value};
use crate::memory::address::Address;
use crate::memory::{Memory, MemoryResult, offset};
use crate::statics::Statics;
use crate::types::field::Field;

const TIMER_QUEUE: &str = "System.Threading.TimerQueue";
/// Maximum number of queues: one for each processor.
const MAX_QUEUES: u32 = 64;
/// The lists of a queue: timers that are due soon, and all others.
const LISTS: [&str; 2] = ["_shortTimers", "_longTimers"];
/// The time of a timer that does not fire, or not again.
const NEVER: u32 = u32::MAX;

/// The timers of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveTimers {
    /// The number of timers that have not fired, or fire again.
    pub count: u64,
    /// The newest timers.
    pub timers: Vec<Timer>,
}

/// A timer that has not fired, or fires again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timer {
    /// The address of the runtime's object.
    pub address: Address,
    /// The delegate that is called.
    pub callback: Address,
    /// The argument of the call; null for none. Its type tells apart who uses the timer: `Task.Delay` has a
    /// task.
    pub state: Address,
    /// The time at which it is due, in milliseconds as `Environment.TickCount64` counts them; `None` if it is
    /// turned off.
    pub due: Option<u64>,
    /// The time from one call to the next; `None` if it fires once.
    pub period: Option<Duration>,
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

/// A moment by both clocks of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TickTime {
    /// The milliseconds that `Environment.TickCount64` counts.
    pub tick: u64,
    /// The time in UTC: units of 100 ns since the beginning of the year 1, as `DateTime.Ticks` counts them.
    pub utc: u64,
}

impl TickTime {
    /// A moment by both clocks.
    pub const fn new(tick: u64, utc: u64) -> Self {
        Self { tick, utc }
    }
}

impl Statics<'_> {
    /// Returns the timers: the number of all, and from each queue the newest ones, at most `max` of each of
    /// its two lists. `None` if the memory lacks the queues.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for timer in dump.statics().timers(10).unwrap_or_default().timers {
    ///     let method = dump.heap().delegate_method(timer.callback).and_then(|method| method.name);
    ///     println!("{method:?} at {:?}, then every {:?}", timer.due, timer.period);
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
            for list in LISTS {
                timers.timers.extend(self.timers_of_list(queue, list, max));
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
        let [soon, _] = LISTS;
        let mut timers = LateTimers::default();
        for queue in self.timer_queues()? {
            for timer in self.timers_of_list(queue, soon, max) {
                let by = timer.due.and_then(|due| now.checked_sub(Duration::from_millis(due)));
                let Some(by) = by.filter(|by| *by >= late) else { continue };
                timers.count = timers.count.saturating_add(1);
                timers.most = timers.most.max(by);
                timers.callbacks.push(timer.callback);
            }
        }
        Some(timers)
    }

    /// Returns a moment of the past by both clocks of the process, from which ticks become times; `None` if
    /// the memory lacks it, as that of .NET Core 3.1 does.
    pub fn tick_time(self) -> Option<TickTime> {
        const KIND_BITS: u32 = 62;
        let field = self.core_library_place(TIMER_QUEUE, "s_tickCountToTimeMap")?;
        let Value::Structure { fields, .. } = self.value(&field) else { return None };
        let [tick, time] = &fields[..] else { return None };
        let (Value::Signed(tick), Value::Structure { fields, .. }) = (&tick.value, &time.value) else {
            return None;
        };
        let Some(Value::Unsigned(date)) = fields.first().map(|field| &field.value) else { return None };
        let utc = date & !(3 << KIND_BITS);
        Some(TickTime { tick: u64::try_from(*tick).ok()?, utc }).filter(|of| of.utc != 0)
    }

    /// Reads at most `max` timers of a list.
    fn timers_of_list(self, queue: Address, list: &str, max: usize) -> Vec<Timer> {
        let mut timers = Vec::new();
        // New timers are put first.
        let mut next = self.dump.heap().reference_field(queue, list);
        let of = next.and_then(|timer| self.dump.heap().type_of(timer));
        let Some(fields) = of.and_then(|of| TimerFields::new(&self.dump.types().fields(of))) else {
            return timers;
        };
        for _ in 0..max {
            let Some(of) = next else { break };
            let Ok((timer, following)) = fields.read(self.memory(), of) else { break };
            timers.push(timer);
            next = following;
        }
        timers
    }

    fn timer_queues(self) -> Option<Vec<Address>> {
        let heap = self.dump.heap();
        let (array, _) = self.core_library_field(TIMER_QUEUE, "<Instances>k__BackingField")?;
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

/// The offsets of the fields of a timer, from the address of the object.
struct TimerFields {
    next: u64,
    start: u64,
    due: u64,
    period: u64,
    callback: u64,
    state: u64,
}

impl TimerFields {
    fn new(fields: &[Field]) -> Option<Self> {
        let place = |name: &str| {
            fields.iter().find(|field| field.name == name).map(|field| offset(8, field.offset.into()))
        };
        Some(Self {
            next: place("_next")?,
            start: place("_startTicks")?,
            due: place("_dueTime")?,
            period: place("_period")?,
            callback: place("_timerCallback")?,
            state: place("_state")?,
        })
    }

    /// Reads a timer, and the one that follows it in its list.
    fn read(&self, memory: &dyn Memory, address: Address) -> MemoryResult<(Timer, Option<Address>)> {
        let start = u64::try_from(memory.i64(address.at(self.start))?).unwrap_or_default();
        let (due, period) = (memory.u32(address.at(self.due))?, memory.u32(address.at(self.period))?);
        let timer = Timer {
            address,
            callback: memory.pointer(address.at(self.callback))?,
            state: memory.pointer(address.at(self.state))?,
            due: (due != NEVER).then(|| start.saturating_add(due.into())),
            // With a period of zero, too, a timer fires once.
            period: (period != NEVER && period != 0).then(|| Duration::from_millis(period.into())),
        };
        let next = memory.pointer(address.at(self.next))?;
        Ok((timer, Some(next).filter(|next| !next.is_null())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    const FIELDS: TimerFields =
        TimerFields { next: 8, start: 16, due: 24, period: 28, callback: 32, state: 40 };

    #[test]
    fn timers_are_due_after_their_start_once_or_again_and_again() {
        let mut memory = TestMemory::default();
        let often = (60_000 << 32) + 500;
        memory.put_words(0x1000, &[0, 0x2000, 7_000, often, 0x5000, 0x6000]);
        memory.put_words(0x2000, &[0, 0, 7_000, u64::MAX, 0x5000, 0]);
        let (timer, next) = FIELDS.read(&memory, Address::new(0x1000)).unwrap();
        assert_eq!((timer.due, timer.period), (Some(7_500), Some(Duration::from_secs(60))));
        assert_eq!((timer.callback, timer.state), (Address::new(0x5000), Address::new(0x6000)));
        let (timer, end) = FIELDS.read(&memory, next.unwrap()).unwrap();
        assert_eq!((timer.due, timer.period, end), (None, None, None));
        assert!(FIELDS.read(&memory, Address::new(0x3000)).is_err());
    }
}
