//! Keywords that tools request from the runtime's own providers, as bits.
//!
//! # Source
//! `src/coreclr/vm/ClrEtwAll.man` of dotnet/runtime; the sampler's are those that dotnet-trace sends.

/// Collections.
pub const GC: u64 = 0x1;
/// Modules and assemblies.
pub const LOADER: u64 = 0x8;
/// Methods that are compiled at run time.
pub const JIT: u64 = 0x10;
/// Methods that were compiled before.
pub const NGEN: u64 = 0x20;
/// All compiled methods.
pub const METHODS: u64 = JIT | NGEN;
/// Exceptions.
pub const EXCEPTION: u64 = 0x8000;
/// Samples of stacks, of the provider `Microsoft-DotNETCore-SampleProfiler`.
pub const SAMPLES: u64 = 0xF000_0000_0000;
