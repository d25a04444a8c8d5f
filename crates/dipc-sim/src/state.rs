//! The state of a process that clients can change.

use crate::identity::Identity;
use dipc_wire::{AttachProfiler, HResult, PerfMapType, StartupProfiler};
use std::path::PathBuf;

/// `HRESULT_FROM_WIN32(ERROR_ENVVAR_NOT_FOUND)`, the answer of real runtimes; the protocol's text has another
/// code.
const VARIABLE_NOT_FOUND: HResult = HResult::from_bits(0x8007_00cb);
/// The answer of NativeAOT to a variable name that the system refuses.
const SYSTEM_REFUSES: HResult = HResult(-1);
/// Maximum length of each list, which bounds the memory that clients can take.
const MAX_LEN: usize = 10_000;

/// The state of a simulated process, with the changes by clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// True if the runtime waits at its start for ResumeRuntime.
    pub suspended: bool,
    /// The environment, `NAME=value` each.
    pub environment: Vec<String>,
    /// The kind of files for `perf` that is enabled.
    pub perf_map: PerfMapType,
    /// The startup hooks that were accepted, in order.
    pub startup_hooks: Vec<String>,
    /// The profilers to be loaded at the start of the process, in order.
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

    /// Sets a variable, or removes it. The last variable takes the place of a removed one, as in the C
    /// library.
    pub(crate) fn set_variable(&mut self, name: &str, value: Option<&str>, strict: bool) -> HResult {
        if strict && (name.is_empty() || name.contains('=')) {
            return SYSTEM_REFUSES;
        }
        let prefix = format!("{name}=");
        let position = self.environment.iter().position(|variable| variable.starts_with(&prefix));
        match (value, position) {
            // Accepted without effect.
            (Some(_), _) if name.is_empty() => HResult::OK,
            (Some(value), Some(position)) => {
                if let Some(variable) = self.environment.get_mut(position) {
                    *variable = prefix + value;
                }
                HResult::OK
            }
            (Some(value), None) => push_bounded(&mut self.environment, prefix + value),
            (None, Some(position)) => {
                self.environment.swap_remove(position);
                HResult::OK
            }
            (None, None) => VARIABLE_NOT_FOUND,
        }
    }
}

/// Appends to a list; fails if it has [`MAX_LEN`] elements.
pub(crate) fn push_bounded<T>(list: &mut Vec<T>, item: T) -> HResult {
    if list.len() >= MAX_LEN {
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
    fn an_empty_name_and_one_with_an_equals_sign_are_refused_only_if_strict() {
        let mut state = state();
        assert_eq!(state.set_variable("", Some("x"), true), SYSTEM_REFUSES);
        assert_eq!(state.set_variable("X=Y", Some("x"), true), SYSTEM_REFUSES);
        assert_eq!(state.set_variable("", Some("x"), false), HResult::OK);
        assert_eq!(state.environment.len(), 3);
        assert_eq!(state.set_variable("X=Y", Some("x"), false), HResult::OK);
        assert_eq!(state.environment[3], "X=Y=x");
    }

    #[test]
    fn a_list_has_a_highest_length() {
        let mut list = vec![(); MAX_LEN];
        assert_eq!(push_bounded(&mut list, ()), HResult::FAIL);
        assert_eq!(list.len(), MAX_LEN);
    }
}
