//! Events of the .NET runtime, and recordings of them: [`Recording`].
//!
//! ```
//! use nettrace_synth::clr::{MANAGED, Method, Recording};
//!
//! let mut recording = Recording::new();
//! recording.module(1, "/app/Shop.dll").method(&Method::new(0x1000, "Shop.Cart", "Pay"));
//! recording.stacks(&[&[0x1010]]);
//! for round in 0..3 {
//!     recording.at(round * 1_000_000).thread(7).sample(1, MANAGED);
//! }
//! assert!(recording.bytes().starts_with(b"Nettrace"));
//! ```
//!
//! # Source
//! dotnet/runtime, `src/coreclr/vm/ClrEtwAll.man`.

mod recording;

pub use recording::Recording;

use crate::{Guid, Value};

/// The type of a sample of managed code.
pub const MANAGED: u32 = 2;
/// The type of a sample of code outside managed code, or of a thread that waits.
pub const EXTERNAL: u32 = 1;

/// A kind of event without a description in the recording: readers know its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Name of the provider.
    pub provider: &'static str,
    /// Number of the event within its provider.
    pub event_id: u32,
    /// Version of its fields.
    pub version: u32,
}

impl Kind {
    /// Returns an event of the runtime's main provider.
    pub const fn runtime(event_id: u32, version: u32) -> Self {
        Self { provider: "Microsoft-Windows-DotNETRuntime", event_id, version }
    }

    /// Returns an event of the provider that lists code at the end of a session.
    pub const fn rundown(event_id: u32, version: u32) -> Self {
        Self { provider: "Microsoft-Windows-DotNETRuntimeRundown", event_id, version }
    }

    /// Returns an event of the provider of the collector's own threads.
    pub const fn private(event_id: u32, version: u32) -> Self {
        Self { provider: "Microsoft-Windows-DotNETRuntimePrivate", event_id, version }
    }
}

/// The kinds that [`Recording`] writes and their relatives with equal fields, named as in the manifest.
#[expect(missing_docs, reason = "named as in the manifest")]
pub mod kind {
    use super::Kind;

    pub const THREAD_SAMPLE: Kind =
        Kind { provider: "Microsoft-DotNETCore-SampleProfiler", event_id: 0, version: 0 };
    pub const GC_START: Kind = Kind::runtime(1, 2);
    pub const GC_END: Kind = Kind::runtime(2, 1);
    pub const GC_RESTART_EE_END: Kind = Kind::runtime(3, 1);
    pub const GC_SUSPEND_EE_END: Kind = Kind::runtime(8, 1);
    pub const GC_SUSPEND_EE_BEGIN: Kind = Kind::runtime(9, 1);
    pub const GC_ALLOCATION_TICK: Kind = Kind::runtime(10, 4);
    pub const EXCEPTION_THROWN: Kind = Kind::runtime(80, 1);
    pub const CONTENTION_START: Kind = Kind::runtime(81, 2);
    pub const CONTENTION_STOP: Kind = Kind::runtime(91, 1);
    pub const METHOD_LOAD: Kind = Kind::runtime(141, 1);
    pub const METHOD_LOAD_VERBOSE: Kind = Kind::runtime(143, 1);
    pub const METHOD_UNLOAD_VERBOSE: Kind = Kind::runtime(144, 1);
    pub const METHOD_DC_END_VERBOSE: Kind = Kind::rundown(144, 1);
    pub const METHOD_JITTING_STARTED: Kind = Kind::runtime(145, 1);
    pub const MODULE_LOAD: Kind = Kind::runtime(152, 1);
    pub const MODULE_DC_END: Kind = Kind::rundown(154, 1);
}

/// Compiled code of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method<'a> {
    /// Address of its MethodDesc, or any other number that no other method has.
    pub id: u64,
    /// Id of its module.
    pub module: u64,
    /// Address of its code.
    pub start: u64,
    /// Bytes of its code.
    pub size: u32,
    /// Metadata token.
    pub token: u32,
    /// How the code was made; 8 = jitted.
    pub flags: u32,
    /// Namespace and name of its type.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// Signature, in the runtime's notation.
    pub signature: &'a str,
}

impl<'a> Method<'a> {
    /// Returns jitted code of 256 bytes at `start`: `void ()`, of module 1, with its address as its id.
    pub const fn new(start: u64, namespace: &'a str, name: &'a str) -> Self {
        Self {
            id: start,
            module: 1,
            start,
            size: 256,
            token: 0x0600_0001,
            flags: 8,
            namespace,
            name,
            signature: "void  ()",
        }
    }

    /// Returns the fields of MethodLoadVerbose, MethodUnloadVerbose and MethodDCEndVerbose, version 1.
    pub fn verbose(&self) -> Vec<Value> {
        let names = [self.namespace, self.name, self.signature].map(Value::string16);
        [&self.code()[..], &names, &[Value::UInt16(0)]].concat()
    }

    /// Returns the fields of MethodLoad, which has no names, version 1.
    pub fn nameless(&self) -> Vec<Value> {
        [&self.code()[..], &[Value::UInt16(0)]].concat()
    }

    /// Returns the fields of MethodJittingStarted, version 1.
    pub fn jitting(&self, il_size: u32) -> Vec<Value> {
        let numbers = [
            Value::UInt64(self.id),
            Value::UInt64(self.module),
            Value::UInt32(self.token),
            Value::UInt32(il_size),
        ];
        let names = [self.namespace, self.name, self.signature].map(Value::string16);
        [&numbers[..], &names, &[Value::UInt16(0)]].concat()
    }

    fn code(&self) -> [Value; 6] {
        let [id, module, start] = [self.id, self.module, self.start].map(Value::UInt64);
        let [size, token, flags] = [self.size, self.token, self.flags].map(Value::UInt32);
        [id, module, start, size, token, flags]
    }
}

/// Returns the fields of ModuleLoad and ModuleDCEnd, version 1, of a module without a native image.
pub fn module(id: u64, path: &str) -> Vec<Value> {
    let [id, assembly] = [id, id].map(Value::UInt64);
    let [flags, reserved] = [0, 0].map(Value::UInt32);
    vec![id, assembly, flags, reserved, Value::string16(path), Value::string16(""), Value::UInt16(0)]
}

/// Returns the fields of GCAllocationTick, version 4.
pub fn allocation(bytes: u64, type_name: &str) -> Vec<Value> {
    vec![
        Value::UInt32(0),
        Value::UInt32(0),
        Value::UInt16(0),
        Value::UInt64(bytes),
        Value::UInt64(0),
        Value::string16(type_name),
        Value::UInt32(0),
        Value::UInt64(0),
        Value::UInt64(24),
    ]
}

/// Returns the fields of ContentionStart, version 2: the address of the lock, and the thread that has it.
pub fn contention_start(lock: u64, owner: u64) -> Vec<Value> {
    let [lock, object, owner] = [lock, 0x6000, owner].map(Value::UInt64);
    vec![Value::Byte(0), Value::UInt16(0), lock, object, owner]
}

/// Returns the fields of ContentionStop, version 1. Version 0 has the first two.
pub fn contention_stop(nanoseconds: f64) -> Vec<Value> {
    vec![Value::Byte(0), Value::UInt16(0), Value::Double(nanoseconds)]
}

/// Returns the fields of an event that the bridge from DiagnosticSource forwards: its source, its name, and
/// the values that were asked for.
pub fn diagnostic(source: &str, event: &str, arguments: &[(&str, &str)]) -> Vec<Value> {
    let argument =
        |(key, value): &(&str, &str)| Value::Object([key, value].map(|it| Value::string16(it)).into());
    let arguments = Value::Array(arguments.iter().map(argument).collect());
    vec![Value::string16(source), Value::string16(event), arguments]
}

/// Returns the id of an activity of a process: the way to it from the root, of numbers from 1 to 10.
///
/// # Source
/// `ActivityTracker.cs` of dotnet/runtime: the numbers as half bytes, and their sum as words with the process
/// as a check.
///
/// # Panics
/// For a number that is not from 1 to 10, and a path of more than 24 numbers.
pub fn activity_id(process: i32, path: &[u8]) -> Guid {
    let mut bytes = [0; 16];
    for (index, number) in path.iter().enumerate() {
        assert!((1..=10).contains(number) && index < 24);
        bytes[index / 2] |= number << if index % 2 == 0 { 4 } else { 0 };
    }
    let words =
        bytes[..12].chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let sum = words.fold(0x599D_99AD_u32, u32::wrapping_add);
    bytes[12..].copy_from_slice(&(sum ^ process.cast_unsigned()).to_le_bytes());
    bytes
}
