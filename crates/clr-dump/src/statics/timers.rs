//! Timers that have not fired, or fire again.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Threading/Timer.cs` (`TimerQueue`, `TimerQueueTimer`); for 3.1
//! dotnet/coreclr `src/System.Private.CoreLib/shared/System/Threading/Timer.cs`, with the same names of fields.

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

impl Statics<'_> {
    /// Returns the timers: the number of all, and from each queue the callbacks of the newest ones, at most `max` of each
    /// of its two lists. `None` if the memory lacks the queues.
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
        let reference = |object: Address, field: &str| match heap.field_value(object, field) {
            Some(Value::Reference { address, .. }) => Some(address),
            _ => None,
        };
        let mut timers = ActiveTimers::default();
        for queue in self.timer_queues()? {
            if let Some(Value::Signed(count)) = heap.field_value(queue, "<ActiveCount>k__BackingField") {
                timers.count = timers.count.saturating_add(u64::try_from(count).unwrap_or_default());
            }
            for list in ["_longTimers", "_shortTimers"] {
                // New timers are put first.
                let mut timer = reference(queue, list);
                for _ in 0..max {
                    let Some(of) = timer else { break };
                    timers.callbacks.extend(reference(of, "_timerCallback"));
                    timer = reference(of, "_next");
                }
            }
        }
        Some(timers)
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
