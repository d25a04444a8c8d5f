//! `/proc/PID/environ`: the environment variables that a process was started with. Variables about
//! diagnostics are kept.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use dipc_wire::PortConfig;

use crate::RuntimeKind;

/// Maximum size of an environment that is read, in bytes; more than a system allows.
const LIMIT: u64 = 16 << 20;

/// The prefixes of the runtime's settings, in order of precedence.
const PREFIXES: [&str; 2] = ["DOTNET_", "COMPlus_"];

/// The environment variables of a process that concern diagnostics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// Reads the environment of a process.
    ///
    /// # Errors
    /// The file and the system's reason.
    pub(super) fn read(pid: u32) -> Result<Self, String> {
        let path = format!("/proc/{pid}/environ");
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|file| file.take(LIMIT).read_to_end(&mut bytes)) {
            Ok(_) => Ok(Self::parse(&String::from_utf8_lossy(&bytes))),
            Err(error) => Err(format!("{path}: {error}")),
        }
    }

    /// Keeps the variables about diagnostics from NUL-terminated `NAME=value` strings.
    pub(crate) fn parse(text: &str) -> Self {
        let of_interest =
            |name: &str| name == "TMPDIR" || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let mut variables = BTreeMap::new();
        for (name, value) in text.split('\0').filter_map(|variable| variable.split_once('=')) {
            if of_interest(name) {
                // As in `getenv`, the first of several counts.
                variables.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        Self { variables }
    }

    /// Returns the folder in which a runtime creates its socket.
    pub(crate) fn tmpdir(&self) -> PathBuf {
        match self.variables.get("TMPDIR") {
            Some(path) if !path.is_empty() => path.into(),
            _ => "/tmp".into(),
        }
    }

    /// Returns the variable of a setting and its value. `DOTNET_` takes precedence over `COMPlus_`.
    pub(crate) fn setting(&self, name: &str) -> Option<(String, &str)> {
        PREFIXES.iter().find_map(|prefix| {
            let variable = format!("{prefix}{name}");
            let value = self.variables.get(&variable).filter(|value| !value.is_empty())?;
            Some((variable, value.as_str()))
        })
    }

    /// Returns the setting as `NAME=value`, if its number, as a runtime of this kind reads it, satisfies
    /// `matches`.
    pub(crate) fn setting_with_number(
        &self,
        name: &str,
        kind: RuntimeKind,
        matches: impl Fn(u64) -> bool,
    ) -> Option<String> {
        // NativeAOT does not read the older prefix.
        let is_read = |variable: &str| {
            !matches!(kind, RuntimeKind::NativeAot { .. }) || variable.starts_with("DOTNET_")
        };
        let (variable, value) = self.setting(name)?;
        (is_read(&variable) && number(value, kind).is_some_and(matches))
            .then(|| format!("{variable}={value}"))
    }

    /// Returns the ports of `DiagnosticPorts`.
    pub(crate) fn ports(&self) -> Vec<PortConfig> {
        let value = self.setting("DiagnosticPorts").map_or("", |(_, value)| value);
        value.split(';').filter_map(|port| port.parse().ok()).collect()
    }
}

/// Parses a setting, which is hexadecimal. CoreCLR parses as C does, up to the first character that is not a
/// digit; NativeAOT accepts only digits.
fn number(value: &str, kind: RuntimeKind) -> Option<u64> {
    if matches!(kind, RuntimeKind::NativeAot { .. }) {
        return value.chars().all(|c| c.is_ascii_hexdigit()).then(|| u64::from_str_radix(value, 16).ok())?;
    }
    let value = value.trim_start();
    let digits = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")).unwrap_or(value);
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(digits.get(..end)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotnet_variables_take_precedence_and_others_are_dropped() {
        let text = "COMPlus_A=1\0DOTNET_A=2\0PATH=/bin\0TMPDIR=\0TMPDIR=/x\0DOTNET_B=\0COMPlus_B=3\0broken";
        let environment = Environment::parse(text);
        assert_eq!(environment.setting("A"), Some(("DOTNET_A".into(), "2")));
        assert_eq!(environment.setting("B"), Some(("COMPlus_B".into(), "3")));
        assert_eq!(environment.setting("C"), None);
        assert_eq!(environment.variables.get("PATH"), None);
        assert_eq!(environment.tmpdir(), PathBuf::from("/tmp"), "an empty one is none");
    }

    /// Observed with .NET 9.
    #[test]
    fn settings_are_read_as_runtimes_read_them() {
        let native = RuntimeKind::NativeAot { has_port: true };
        for (value, coreclr, nativeaot) in [
            ("0", true, true),
            ("00", true, true),
            ("0x0", true, false),
            ("1", false, false),
            ("false", false, false),
            ("no", false, false),
            ("", false, false),
        ] {
            let environment = Environment::parse(&format!("DOTNET_EnableDiagnostics={value}"));
            let is_off = |kind| {
                environment.setting_with_number("EnableDiagnostics", kind, |number| number == 0).is_some()
            };
            assert_eq!(is_off(RuntimeKind::CoreClr), coreclr, "{value}");
            assert_eq!(is_off(native), nativeaot, "{value}");
        }
        let old_name = Environment::parse("COMPlus_EnableDiagnostics=0");
        assert_eq!(old_name.setting_with_number("EnableDiagnostics", native, |number| number == 0), None);
    }
}
