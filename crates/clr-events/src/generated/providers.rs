//! The providers whose events this crate knows.
//!
//! Made by `cargo xtask schemas` from `facts`: change these, not this file.

use crate::macros::providers;

providers! {
    Runtime = "Microsoft-Windows-DotNETRuntime", 0xe13c0d23ccbc4e12931bd9cc2eee27e4, "The runtime: collections, code, locks, threads, exceptions.";
    Rundown = "Microsoft-Windows-DotNETRuntimeRundown", 0xa669021cc4504609a0355af59af4df18, "Code, modules and settings that were there when a session ended, or began.";
    Private = "Microsoft-Windows-DotNETRuntimePrivate", 0x763fd75470864dfe95ebc01a46faf4ca, "The runtime, for those who work on it.";
    Stress = "Microsoft-Windows-DotNETRuntimeStress", 0xcc2bcbba16b64cf38990d74c2e8af500, "The runtime's stress log.";
    MonoProfiler = "Microsoft-DotNETRuntimeMonoProfiler", 0x7f442d820f1d51554b8c1529eb2e31c2, "The profiler of the Mono runtime.";
    SampleProfiler = "Microsoft-DotNETCore-SampleProfiler", 0x3c530d4497ae513a1e6d783e8f8e03a9, "Stacks of managed threads, taken about every millisecond.";
    UniversalSystem = "Universal.System", 0x8c107b6c79f852314de62a0e20a3f562, "Processes, mappings and symbols of a whole machine (V6).";
}
