//! HRESULTs: the error codes of runtimes.

use crate::codec::transparent;
use core::fmt;

/// A result code of the runtime; negative means failure. Unknown codes are kept as they are.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 4 | i32 | the code |
///
/// ```
/// use dipc_wire::HResult;
///
/// let refusal = HResult::from_bits(0x8013_1385);
/// assert!(refusal.is_failure());
/// assert_eq!(refusal, HResult::UNKNOWN_COMMAND);
/// ```
///
/// # Source
/// Diagnostic IPC Protocol, "Errors".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HResult(pub i32);

/// Defines the associated constants and the table that `name` and `description` look up.
macro_rules! hresults {
    ($($(#[doc = $doc:literal])+ $name:ident = $value:literal, $description:literal;)+) => {
        impl HResult {
            $(
                $(#[doc = $doc])+
                pub const $name: Self = Self::from_bits($value);
            )+

            /// The constants' names and descriptions.
            const TABLE: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$name, stringify!($name), $description)),+];
        }
    };
}

hresults! {
    /// `S_OK`: success.
    OK = 0x0000_0000, "success";
    /// `DS_IPC_E_BAD_ENCODING`: the payload could not be parsed, or has a value out of range.
    BAD_ENCODING = 0x8013_1384, "the runtime could not read the request, or a value in it is out of range";
    /// `DS_IPC_E_UNKNOWN_COMMAND`: this runtime does not have the command.
    UNKNOWN_COMMAND = 0x8013_1385, "this runtime does not know the command";
    /// `DS_IPC_E_UNKNOWN_MAGIC`: the message did not begin with the protocol's magic.
    UNKNOWN_MAGIC = 0x8013_1386, "the runtime does not know this version of the protocol";
    /// `DS_IPC_E_NOTSUPPORTED`: the command is known but not supported here.
    NOT_SUPPORTED = 0x8013_1515, "this runtime does not support the command on this platform or in this build";
    /// `DS_IPC_E_FAIL`, `E_FAIL`: an unspecified failure.
    FAIL = 0x8000_4005, "the runtime could not carry out the command";
    /// `DS_IPC_E_NOT_YET_AVAILABLE`: the requested data does not exist yet.
    NOT_YET_AVAILABLE = 0x8013_135b, "not available yet, the runtime is still starting";
    /// `DS_IPC_E_RUNTIME_UNINITIALIZED`: the runtime has not been initialised.
    RUNTIME_UNINITIALIZED = 0x8013_1371, "the runtime is not initialised yet";
    /// `DS_IPC_E_INVALIDARG`, `E_INVALIDARG`: an argument is invalid.
    INVALID_ARGUMENT = 0x8007_0057, "an argument is invalid";
    /// `DS_IPC_E_INSUFFICIENT_BUFFER`: a buffer in the runtime was too small.
    INSUFFICIENT_BUFFER = 0x8007_007a, "a buffer in the runtime is too small";
    /// `HRESULT_FROM_WIN32(ERROR_ENVVAR_NOT_FOUND)`: the environment variable does not exist; as seen on .NET
    /// 9 and 10.
    ENVVAR_NOT_FOUND = 0x8007_00cb, "the environment variable does not exist";
    /// `DS_IPC_E_ENVVAR_NOT_FOUND`: the same in the protocol's text, never seen.
    DS_ENVVAR_NOT_FOUND = 0x8000_00cb, "the environment variable does not exist";
    /// `E_NOTIMPL`: not implemented.
    NOT_IMPLEMENTED = 0x8000_4001, "this runtime does not implement it";
    /// `E_ACCESSDENIED`: the target's user lacks the permission.
    ACCESS_DENIED = 0x8007_0005, "the user of the target may not do it";
    /// `E_OUTOFMEMORY`: the runtime does not have enough memory.
    OUT_OF_MEMORY = 0x8007_000e, "the runtime has no memory for it";
    /// `HRESULT_FROM_WIN32(ERROR_MOD_NOT_FOUND)`: a library could not be loaded.
    MODULE_NOT_FOUND = 0x8007_007e, "the library could not be loaded: is it there as the target sees its files, and for its platform?";
    /// `HRESULT_FROM_WIN32(ERROR_TIMEOUT)`: it took too long.
    TIMED_OUT = 0x8007_05b4, "it took longer than the time-out in the request";
    /// `CORPROF_E_PROFILER_NOT_ATTACHABLE`: the profiler does not support attaching.
    PROFILER_NOT_ATTACHABLE = 0x8013_1368, "the profiler does not support being attached to a running process";
    /// `CORPROF_E_PROFILER_ALREADY_ACTIVE`: another profiler is loaded.
    PROFILER_ALREADY_ACTIVE = 0x8013_136a, "the process has a profiler already";
    /// `CORPROF_E_PROFILER_CANCEL_ACTIVATION`: the profiler declined.
    PROFILER_CANCELLED = 0x8013_1375, "the profiler itself declined to be loaded";
    /// `CORPROF_E_TIMEOUT_WAITING_FOR_CONCURRENT_GC`: a garbage collection took too long.
    PROFILER_GC_TIMED_OUT = 0x8013_1379, "a concurrent garbage collection did not end in time for the profiler to be attached";
}

impl HResult {
    /// Returns the code with these 32 bits, as they are usually written: `HResult::from_bits(0x8013_1385)`.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits.cast_signed())
    }

    /// Returns the code's 32 bits, as they are usually written in hexadecimal.
    pub const fn bits(self) -> u32 {
        self.0.cast_unsigned()
    }

    /// Returns whether the code means failure.
    pub const fn is_failure(self) -> bool {
        self.0 < 0
    }

    /// Returns the name of the associated constant, if this crate knows the code.
    pub fn name(self) -> Option<&'static str> {
        Self::TABLE.iter().find(|(code, _, _)| *code == self).map(|(_, name, _)| *name)
    }

    /// Returns a description in a few words, if this crate knows the code.
    pub fn description(self) -> Option<&'static str> {
        Self::TABLE.iter().find(|(code, _, _)| *code == self).map(|(_, _, description)| *description)
    }
}

/// Prints `0x80131385 (UNKNOWN_COMMAND)`, or the number alone for a code without a name.
impl fmt::Display for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.bits())?;
        match self.name() {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}

transparent!(HResult(i32));

#[cfg(test)]
mod tests {
    use super::HResult;
    use alloc::string::ToString as _;

    #[test]
    fn known_codes_print_with_their_name_and_unknown_ones_as_numbers() {
        assert_eq!(HResult::UNKNOWN_COMMAND.to_string(), "0x80131385 (UNKNOWN_COMMAND)");
        assert_eq!(HResult(1).to_string(), "0x00000001");
        assert_eq!(HResult::from_bits(0xdead_beef).to_string(), "0xdeadbeef");
        assert_eq!(HResult(-2_146_233_467), HResult::UNKNOWN_COMMAND);
        assert!(HResult::UNKNOWN_COMMAND.is_failure() && !HResult::OK.is_failure());
    }

    #[test]
    fn no_code_is_in_the_table_twice() {
        for (at, (code, name, description)) in HResult::TABLE.iter().enumerate() {
            assert_eq!(HResult::TABLE.iter().position(|(other, _, _)| other == code), Some(at), "{name}");
            assert_eq!(code.name(), Some(*name));
            assert_eq!(code.description(), Some(*description));
        }
    }
}
