//! What clients can change in a process, and read back.

use crate::identity::Identity;
use dipc_wire::{AttachProfiler, HResult, PerfMapType, StartupProfiler};
use std::path::PathBuf;

/// `HRESULT_FROM_WIN32(ERROR_ENVVAR_NOT_FOUND)`: what runtimes answer where the protocol's text has another code.
const VARIABLE_NOT_FOUND: HResult = HResult::from_bits(0x8007_00cb);
/// What NativeAOT answers to a variable that the system does not take.
const SYSTEM_REFUSES: HResult = HResult(-1);
/// As many of a kind are kept at most, so that no client can fill the memory.
const MAX_KEPT: usize = 10_000;

/// What clients have done to a simulated process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// Whether the runtime waits at its start to be resumed.
    pub suspended: bool,
    /// The environment as it is now, `NAME=value` each.
    pub environment: Vec<String>,
    /// Which files for `perf` would be written now.
    pub perf_map: PerfMapType,
    /// The startup hooks that were accepted, in order.
    pub startup_hooks: Vec<String>,
    /// The profilers for the process's start, in order.
    pub startup_profilers: Vec<StartupProfiler>,
    /// The profilers that were attached, in order.
    pub attached_profilers: Vec<AttachProfiler>,
    /// The dumps that were written, in order.
    pub dumps: Vec<PathBuf>,
}

impl State {
    pub(crate) fn new(identity: &Identity, suspended: bool) -> Self {
        Self {
            suspended,
            environment: identity.environment.clone(),
            perf_map: PerfMapType::DISABLED,
            ..Self::default()
        }
    }

    /// Sets a variable, or removes it; as the C library does it, the last one takes the place of a removed one.
    pub(crate) fn set_variable(&mut self, name: &str, value: Option<&str>, strict: bool) -> HResult {
        if strict && (name.is_empty() || name.contains('=')) {
            return SYSTEM_REFUSES;
        }
        let prefix = format!("{name}=");
        let place = self.environment.iter().position(|variable| variable.starts_with(&prefix));
        match (value, place) {
            // Accepted, and without effect.
            (Some(_), _) if name.is_empty() => HResult::OK,
            (Some(value), Some(place)) => {
                if let Some(variable) = self.environment.get_mut(place) {
                    *variable = prefix + value;
                }
                HResult::OK
            }
            (Some(value), None) => keep(&mut self.environment, prefix + value),
            (None, Some(place)) => {
                self.environment.swap_remove(place);
                HResult::OK
            }
            (None, None) => VARIABLE_NOT_FOUND,
        }
    }
}

/// Adds to a list, unless it is as long as it may be.
pub(crate) fn keep<T>(list: &mut Vec<T>, item: T) -> HResult {
    if list.len() >= MAX_KEPT {
        return HResult::FAIL;
    }
    list.push(item);
    HResult::OK
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State { environment: ["A=1", "AB=2", "C=3"].map(String::from).into(), ..State::default() }
    }

    #[test]
    fn variables_are_set_and_removed_as_in_a_real_process() {
        let mut state = state();
        assert_eq!(state.set_variable("D", Some("ü"), false), HResult::OK);
        assert_eq!(state.set_variable("A", Some("7"), false), HResult::OK);
        assert_eq!(state.environment, ["A=7", "AB=2", "C=3", "D=ü"]);
        assert_eq!(state.set_variable("A", None, false), HResult::OK);
        assert_eq!(state.environment, ["D=ü", "AB=2", "C=3"]);
        assert_eq!(state.set_variable("A", None, false), VARIABLE_NOT_FOUND);
        assert_eq!(state.set_variable("E", Some(""), false), HResult::OK);
        assert_eq!(state.environment, ["D=ü", "AB=2", "C=3", "E="]);
    }

    #[test]
    fn odd_names_are_taken_or_not() {
        let mut state = state();
        assert_eq!(state.set_variable("", Some("x"), true), SYSTEM_REFUSES);
        assert_eq!(state.set_variable("X=Y", Some("x"), true), SYSTEM_REFUSES);
        assert_eq!(state.set_variable("", Some("x"), false), HResult::OK);
        assert_eq!(state.environment.len(), 3);
        assert_eq!(state.set_variable("X=Y", Some("x"), false), HResult::OK);
        assert_eq!(state.environment[3], "X=Y=x");
    }

    #[test]
    fn no_client_fills_the_memory() {
        let mut list = vec![(); MAX_KEPT];
        assert_eq!(keep(&mut list, ()), HResult::FAIL);
        assert_eq!(list.len(), MAX_KEPT);
    }
}
