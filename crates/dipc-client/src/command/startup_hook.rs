use std::path::Path;

use dipc_wire::{ApplyStartupHook, Command as _};

use crate::process_view::ProcessView;
use crate::{Error, Hazard, Startup, Target};

impl Target {
    /// Has a suspended runtime load an assembly, and run its `StartupHook.Initialize()`, before the program
    /// begins.
    ///
    /// `path` is an absolute path on the *target's* filesystem. Acceptance by the runtime means nothing: the
    /// assembly is loaded when the runtime is resumed, and an assembly that cannot be loaded, or lacks the
    /// method, ends the process. A program that was published without support for startup hooks ignores it.
    ///
    /// # Errors
    /// Blocked if the runtime is running or its state is not visible, and if the file does not exist as the
    /// target sees its files ([`Hazard`]). NativeAOT refuses it with
    /// [`HResult::NOT_SUPPORTED`](crate::HResult::NOT_SUPPORTED).
    pub fn apply_startup_hook(&self, path: &str) -> Result<(), Error> {
        const NAME: &str = ApplyStartupHook::<String>::NAME;
        if self.has_safeguards()
            && !self.is_unknown(ApplyStartupHook::<String>::ID)
            && let Some(hazard) = hazard(self.view()?.as_ref(), path)
        {
            return Err(self.blocked(NAME, hazard));
        }
        self.send_command(&ApplyStartupHook { path: path.to_owned() }, self.request_deadline())
    }
}

fn hazard(view: Option<&ProcessView>, path: &str) -> Option<Hazard> {
    let not_found = |why: String| Some(Hazard::HookNotFound { path: path.to_owned(), why });
    // The target's system is assumed to be this one, unless its process is not visible.
    let (of_unix, of_windows) = (path.starts_with('/'), is_absolute_on_windows(path));
    let is_absolute = match view {
        Some(_) if cfg!(windows) => of_windows,
        Some(_) => of_unix,
        None => of_unix || of_windows,
    };
    if !is_absolute {
        return not_found("the path is not absolute".into());
    }
    if of_unix && path.contains(':') {
        return not_found("a colon divides two paths".into());
    }
    if of_windows && path.contains(';') {
        return not_found("a semicolon divides two paths".into());
    }
    // Only Linux shows the files of a process as the process sees them.
    let Some(view) = view.filter(|_| cfg!(target_os = "linux")) else { return Some(Hazard::StartupUnknown) };
    match view.metadata(Path::new(path)) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return not_found("it is not a file".into()),
        Err(error) => return not_found(error.to_string()),
    }
    match view.startup() {
        Startup::Suspended => None,
        Startup::Running => Some(Hazard::HookWhileRunning),
        Startup::Unknown => Some(Hazard::StartupUnknown),
    }
}

/// Returns whether the path begins with a drive and a root, or with a server.
fn is_absolute_on_windows(path: &str) -> bool {
    let is_separator = |byte: &u8| matches!(byte, b'\\' | b'/');
    match path.as_bytes() {
        [drive, b':', root, ..] => drive.is_ascii_alphabetic() && is_separator(root),
        [first, second, ..] => *first == b'\\' && is_separator(second),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_another_system_is_judged_by_that_systems_rules() {
        for path in ["/hook.dll", r"C:\hook.dll", "c:/hooks/hook.dll", r"\\server\share\hook.dll"] {
            assert_eq!(hazard(None, path), Some(Hazard::StartupUnknown), "{path}");
        }
        for (path, fault) in [
            ("hook.dll", "the path is not absolute"),
            ("C:hook.dll", "the path is not absolute"),
            (r"\hook.dll", "the path is not absolute"),
            ("", "the path is not absolute"),
            ("/a:/b", "a colon divides two paths"),
            (r"C:\a;C:\b", "a semicolon divides two paths"),
        ] {
            let expected = Hazard::HookNotFound { path: path.into(), why: fault.into() };
            assert_eq!(hazard(None, path), Some(expected), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_visible_process_has_the_paths_of_this_system() {
        let view = ProcessView::of(std::process::id());
        let hazard = hazard(Some(&view), r"C:\hook.dll");
        assert!(
            matches!(&hazard, Some(Hazard::HookNotFound { why, .. }) if why == "the path is not absolute")
        );
    }
}
