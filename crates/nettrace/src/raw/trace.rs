//! The Trace object or block: clock and process of the recording.
//!
//! ```text
//! netperf V1, V2 = forward-reference:u32 start:systemtime ticks:i64 frequency:i64
//! V3, V4         = start:systemtime ticks:i64 frequency:i64 pointer-size:i32 process:i32 processors:i32 sampling-rate:i32
//! V6             = start:systemtime ticks:i64 frequency:i64 pointer-size:i32 count:i32 (key:string value:string)*
//! ```

use alloc::string::String;
use alloc::vec::Vec;

use crate::cursor::{Cursor, ReadError, ReadResult};
use crate::info::{Format, TraceInfo};
use crate::time::{SystemTime, Ticks};

/// Size of the object in netperf V1 and V2, which do not store it.
pub(crate) const NETPERF_V1_SIZE: usize = 36;
/// Size of the object in V3 and V4, which do not store it.
pub(crate) const V4_SIZE: usize = 48;

/// Parses the object of netperf V1 and V2. Their pointer size is not recorded: all platforms that had them
/// used 8 bytes.
pub(crate) fn netperf_v1(data: &[u8], version: u32) -> ReadResult<TraceInfo> {
    let mut cursor = Cursor::new(data);
    cursor.u32()?;
    clock(&mut cursor, Format::Netperf, version)
}

/// Parses the object of V3, V4 and V5.
pub(crate) fn v4(data: &[u8], format: Format, version: u32) -> ReadResult<TraceInfo> {
    let mut cursor = Cursor::new(data);
    let mut info = clock(&mut cursor, format, version)?;
    info.pointer_size = pointer_size(cursor.u32()?)?;
    info.process_id = Some(u64::from(cursor.u32()?));
    info.processors = Some(cursor.u32()?);
    info.sampling_rate = Some(u64::from(cursor.u32()?));
    Ok(info)
}

/// Parses the block of V6.
pub(crate) fn v6(data: &[u8], version: u32, minor_version: u32) -> ReadResult<TraceInfo> {
    let mut cursor = Cursor::new(data);
    let mut info = clock(&mut cursor, Format::Nettrace, version)?;
    info.minor_version = minor_version;
    info.pointer_size = pointer_size(cursor.u32()?)?;
    let count = cursor.length("negative number of key/value pairs")?;
    let mut key_values = Vec::new();
    for _ in 0..count {
        let key = String::from_utf8_lossy(cursor.string8()?).into_owned();
        let value = String::from_utf8_lossy(cursor.string8()?).into_owned();
        match key.as_str() {
            "ProcessId" => info.process_id = value.parse().ok(),
            "HardwareThreadCount" => info.processors = value.parse().ok(),
            "ExpectedCPUSamplingRate" => info.sampling_rate = value.parse().ok(),
            _ => {}
        }
        key_values.push((key, value));
    }
    info.key_values = key_values;
    Ok(info)
}

fn clock(cursor: &mut Cursor<'_>, format: Format, version: u32) -> ReadResult<TraceInfo> {
    let start = SystemTime::from_le_bytes(cursor.array()?);
    let start_ticks = Ticks(cursor.u64()?);
    let frequency = cursor.i64()?;
    let frequency = u64::try_from(frequency)
        .ok()
        .filter(|frequency| *frequency > 0)
        .ok_or(ReadError::Invalid("the clock's frequency is not positive"))?;
    Ok(TraceInfo {
        format,
        version,
        minor_version: 0,
        start,
        start_ticks,
        frequency,
        pointer_size: 8,
        process_id: None,
        processors: None,
        sampling_rate: None,
        key_values: Vec::new(),
    })
}

fn pointer_size(size: u32) -> ReadResult<u8> {
    match size {
        4 => Ok(4),
        8 => Ok(8),
        _ => Err(ReadError::Invalid("the pointer size is neither 4 nor 8")),
    }
}
