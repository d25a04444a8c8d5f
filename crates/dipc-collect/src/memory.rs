//! The memory of a process or a core dump by its owners: readings, the JSON that they are kept in, and growth
//! from one to the next.
//!
//! A [`MemoryReading`] is the account of clr-dump with the limits and settings of the process. A
//! [`MemoryReport`] is its JSON. A [`MemorySnapshot`] has what is compared of a report, also of one in a
//! file, and [`MemoryGrowth`] is the comparison. A [`MemoryPage`] shows either.

mod answer;
mod growth;
mod names;
mod page;
#[cfg(target_os = "linux")]
mod process;
mod reading;
mod report;
mod snapshot;

pub use answer::{Subject, first_line};
pub use growth::{MemoryGrowth, OwnerGrowth};
pub use names::owner_name;
pub use page::MemoryPage;
pub use reading::{HeapLimit, MemoryGroup, MemoryReading, ProcessNumbers};
pub use report::MemoryReport;
pub use snapshot::{MAX_SNAPSHOT_BYTES, MemorySnapshot, OwnerSnapshot, SnapshotError};
