//! Names and types of the tables' columns.

/// The version of the tables. It grows when columns are appended; no column is ever removed or changed.
pub const SCHEMA_VERSION: i32 = 1;

/// The type of a column. DuckDB, DataFusion, Spark, Trino and ClickHouse read these types alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnType {
    /// 64 bits, signed. Unsigned numbers keep their bits.
    Long,
    /// 32 bits, signed.
    Int,
    /// A 64-bit float.
    Double,
    /// True or false.
    Bool,
    /// UTF-8, highly repetitive.
    Text,
    /// UTF-8, mostly distinct.
    LongText,
    /// Bytes, mostly distinct.
    Bytes,
    /// 16 bytes: an identity by content.
    Id,
    /// A list of identities.
    IdList,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: ColumnType,
}

/// A table.
///
/// ```
/// let events = nettrace_tables::TABLES.iter().find(|table| table.name == "events").ok_or("no events")?;
/// let names: Vec<_> = events.columns.iter().map(|column| column.name).collect();
/// assert!(names.contains(&"provider") && names.contains(&"stack_id"), "{names:?}");
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Table {
    /// The name of the table and of its directory.
    pub name: &'static str,
    /// All columns, in the order of the files.
    pub columns: &'static [Column],
}

macro_rules! tables {
    ($($(#[$about:meta])* $module:ident $constant:ident = $table:literal { $($column:ident $name:ident: $kind:ident;)* })*) => {
        $(
            $(#[$about])*
            pub(crate) static $constant: Table = Table { name: $table, columns: $module::COLUMNS };

            /// The columns of the table, and the index of each.
            #[allow(dead_code, reason = "not every column is set by its index")]
            pub(crate) mod $module {
                use super::{Column, ColumnType, index};

                pub(crate) const COLUMNS: &[Column] =
                    &[$(Column { name: stringify!($name), kind: ColumnType::$kind }),*];
                $(pub(crate) const $column: usize = index(COLUMNS, stringify!($name));)*
            }
        )*

        /// All written tables, `recordings` last: its file marks a shard as complete.
        pub static TABLES: &[&Table] = &[$(&$constant),*];
    };
}

/// Returns the index of a column.
const fn index(columns: &[Column], name: &str) -> usize {
    let mut index = 0;
    while !is_same(columns[index].name.as_bytes(), name.as_bytes()) {
        index += 1;
    }
    index
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

tables! {
    /// Events, each with its typed columns or its fields as JSON.
    events EVENTS = "events" {
        TIME_NS time_ns: Long;
        VERSION version: Text;
        POD pod: Text;
        RECORDING recording: Text;
        PID pid: Long;
        TID tid: Long;
        CPU cpu: Int;
        PROVIDER provider: Text;
        EVENT event: Text;
        EVENT_ID event_id: Int;
        EVENT_VERSION event_version: Int;
        LEVEL level: Int;
        KEYWORDS keywords: Long;
        OPCODE opcode: Int;
        ACTIVITY activity: Text;
        RELATED related: Text;
        STACK_ID stack_id: Id;
        FIELDS fields: LongText;
        PAYLOAD payload: Bytes;
        ALLOC_TYPE alloc_type: Text;
        ALLOC_BYTES alloc_bytes: Long;
        ALLOC_KIND alloc_kind: Text;
        ALLOC_OBJECT_BYTES alloc_object_bytes: Long;
        EXCEPTION_TYPE exception_type: Text;
        EXCEPTION_MESSAGE exception_message: Text;
        EXCEPTION_HRESULT exception_hresult: Int;
        GC_NUMBER gc_number: Long;
        GC_GENERATION gc_generation: Int;
        GC_REASON gc_reason: Text;
        GC_TYPE gc_type: Text;
        SUSPEND_REASON suspend_reason: Text;
        SUSPEND_GC_NUMBER suspend_gc_number: Long;
        HEAP_GEN0_BYTES heap_gen0_bytes: Long;
        HEAP_GEN1_BYTES heap_gen1_bytes: Long;
        HEAP_GEN2_BYTES heap_gen2_bytes: Long;
        HEAP_LOH_BYTES heap_loh_bytes: Long;
        HEAP_POH_BYTES heap_poh_bytes: Long;
        HEAP_GEN0_PROMOTED_BYTES heap_gen0_promoted_bytes: Long;
        HEAP_GEN1_PROMOTED_BYTES heap_gen1_promoted_bytes: Long;
        HEAP_GEN2_PROMOTED_BYTES heap_gen2_promoted_bytes: Long;
        HEAP_LOH_PROMOTED_BYTES heap_loh_promoted_bytes: Long;
        HEAP_POH_PROMOTED_BYTES heap_poh_promoted_bytes: Long;
        HEAP_FINALIZATION_BYTES heap_finalization_bytes: Long;
        HEAP_FINALIZATION_COUNT heap_finalization_count: Long;
        HEAP_PINNED_COUNT heap_pinned_count: Long;
        HEAP_SINK_BLOCK_COUNT heap_sink_block_count: Long;
        HEAP_HANDLE_COUNT heap_handle_count: Long;
        CONTENTION_NS contention_ns: Long;
        CONTENTION_KIND contention_kind: Text;
        POOL_ACTIVE_THREADS pool_active_threads: Int;
        POOL_RETIRED_THREADS pool_retired_threads: Int;
        POOL_WANTED_THREADS pool_wanted_threads: Int;
        POOL_THROUGHPUT pool_throughput: Double;
        POOL_REASON pool_reason: Text;
        COUNTER_NAME counter_name: Text;
        COUNTER_KIND counter_kind: Text;
        COUNTER_VALUE counter_value: Double;
        COUNTER_COUNT counter_count: Long;
        COUNTER_MIN counter_min: Double;
        COUNTER_MAX counter_max: Double;
        COUNTER_INTERVAL_NS counter_interval_ns: Long;
        COUNTER_UNIT counter_unit: Text;
        COUNTER_TAGS counter_tags: Text;
        REQUEST_ROLE request_role: Text;
        REQUEST_NAME request_name: Text;
        REQUEST_KEY request_key: Text;
        REQUEST_STATUS request_status: Text;
        REQUEST_ERROR request_error: Bool;
    }

    /// Samples of threads and of processors, and times that threads were off these.
    samples SAMPLES = "samples" {
        TIME_NS time_ns: Long;
        VERSION version: Text;
        POD pod: Text;
        RECORDING recording: Text;
        PID pid: Long;
        TID tid: Long;
        KIND kind: Text;
        NS ns: Long;
        ACTIVITY activity: Text;
        STACK_ID stack_id: Id;
    }

    /// Call stacks. A stack may have a row in several files, and several rows in one file.
    stacks STACKS = "stacks" {
        STACK_ID stack_id: Id;
        DEPTH depth: Int;
        LEAF leaf: Id;
        FRAMES frames: IdList;
    }

    /// Methods, symbols and kinds of code without a name. A frame may have a row in several files, and
    /// several rows in one file.
    frames FRAMES = "frames" {
        FRAME_ID frame_id: Id;
        KIND kind: Text;
        MODULE module: Text;
        TYPE type: Text;
        METHOD method: Text;
        SIGNATURE signature: Text;
        METHOD_KEY method_key: Text;
    }

    /// Lost events: a row for each gap that the recording lists, and one without a thread for all others.
    losses LOSSES = "losses" {
        TIME_NS time_ns: Long;
        VERSION version: Text;
        POD pod: Text;
        RECORDING recording: Text;
        PID pid: Long;
        TID tid: Long;
        AFTER_NS after_ns: Long;
        BEFORE_NS before_ns: Long;
        EVENTS events: Long;
    }

    /// Damaged parts of recordings: a row for each that the reader lists.
    damages DAMAGES = "damages" {
        RECORDING recording: Text;
        OFFSET offset: Long;
        SKIPPED skipped: Long;
        WHAT what: Text;
    }

    /// Recordings, a row each.
    recordings RECORDINGS = "recordings" {
        RECORDING recording: Text;
        VERSION version: Text;
        POD pod: Text;
        HOST host: Text;
        RUNTIME runtime: Text;
        OS os: Text;
        ARCH arch: Text;
        COMMAND_LINE command_line: Text;
        FORMAT format: Text;
        URI uri: Text;
        PID pid: Long;
        START_NS start_ns: Long;
        END_NS end_ns: Long;
        BYTES bytes: Long;
        EVENTS events: Long;
        SAMPLES samples: Long;
        LEFT_OUT left_out: Long;
        LOST lost: Long;
        DAMAGES damages: Long;
        TRUNCATED truncated: Bool;
        SCHEMA_VERSION schema_version: Int;
        LABELS labels: Text;
        UNNAMED_METHODS unnamed_methods: Long;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_names_of_their_own() {
        for table in TABLES {
            let mut names: Vec<_> = table.columns.iter().map(|column| column.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.columns.len(), "{}", table.name);
        }
        assert_eq!(TABLES.last().map(|table| table.name), Some("recordings"));
    }
}
