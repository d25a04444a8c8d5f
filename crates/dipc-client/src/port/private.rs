//! A port for the programs that this process starts.

use std::ffi::OsString;
use std::process::Command;

use dipc_transport::Address;
use tempfile::TempDir;

use crate::Error;
#[cfg(unix)]
use crate::PortError;

/// The variable that names a runtime's ports.
const DIAGNOSTIC_PORTS: &str = "DOTNET_DiagnosticPorts";

/// Returns a socket in a new folder that only this user can open, and that folder.
#[cfg(unix)]
pub(super) fn address() -> Result<(Address, Option<TempDir>), Error> {
    // A runtime connects by the full path, and a socket's name has at most 107 bytes.
    const MAX_PARENT_LENGTH: usize = 80;
    let parent = std::env::temp_dir();
    let parent = if parent.as_os_str().len() > MAX_PARENT_LENGTH { "/tmp".into() } else { parent };
    let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix("dipc-").permissions(owner_only).tempdir_in(&parent);
    let folder = folder.map_err(|error| PortError::Folder { parent, error })?;
    Ok((folder.path().join("port").into(), Some(folder)))
}

/// Returns a pipe with a random name.
#[cfg(windows)]
pub(super) fn address() -> Result<(Address, Option<TempDir>), Error> {
    let name = format!(r"\\.\pipe\dipc-{}", uuid::Uuid::new_v4());
    Ok((std::path::PathBuf::from(name).into(), None))
}

/// Adds the port to the ports that the runtime of `command` connects to, and makes it wait there.
pub(super) fn configure(address: &Address, command: &mut Command) {
    // The command's own variables take precedence over our environment.
    let own = command
        .get_envs()
        .find(|(name, _)| *name == DIAGNOSTIC_PORTS)
        .map(|(_, value)| value.map(OsString::from));
    let before = own.unwrap_or_else(|| std::env::var_os(DIAGNOSTIC_PORTS)).filter(|ports| !ports.is_empty());
    let mut ports = before.map_or_else(OsString::new, |mut ports| {
        ports.push(";");
        ports
    });
    let address = address.to_string();
    // Runtimes add the prefix themselves.
    ports.push(address.strip_prefix(r"\\.\pipe\").unwrap_or(&address));
    ports.push(",suspend");
    command.env(DIAGNOSTIC_PORTS, ports);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(command: &mut Command) -> OsString {
        configure(&std::path::PathBuf::from("/run/a/port").into(), command);
        let variable = command.get_envs().find(|(name, _)| *name == DIAGNOSTIC_PORTS).unwrap();
        variable.1.unwrap().to_owned()
    }

    #[test]
    fn the_own_port_follows_the_existing_ports() {
        let mut command = Command::new("program");
        command.env(DIAGNOSTIC_PORTS, "other,nosuspend");
        assert_eq!(configured(&mut command), "other,nosuspend;/run/a/port,suspend");
        let mut command = Command::new("program");
        command.env_remove(DIAGNOSTIC_PORTS);
        assert_eq!(configured(&mut command), "/run/a/port,suspend");
    }

    #[cfg(unix)]
    #[test]
    fn the_folder_is_for_this_user_only_and_does_not_last() {
        use std::os::unix::fs::PermissionsExt as _;
        let (address, folder) = address().unwrap();
        let folder = folder.unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(address.to_string().starts_with(path.to_str().unwrap()));
        drop(folder);
        assert!(!path.exists());
    }
}
