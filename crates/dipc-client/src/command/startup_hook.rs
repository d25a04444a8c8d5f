use std::path::Path;

use dipc_wire::{ApplyStartupHook, Command as _};

use crate::process_view::ProcessView;
use crate::{Error, Hazard, Startup, Target};

impl Target {
    /// Has a suspended runtime load an assembly, and run its `StartupHook.Initialize()`, before the program begins.
    ///
    /// `path` is absolute, and one of the *target's* files. That the runtime accepts it says nothing: it is loaded when the
    /// runtime is resumed, and one that cannot be loaded, or has no such method, ends the process. A program that was
    /// published without support for startup hooks ignores it.
    ///
    /// # Errors
    /// Held back where the runtime runs already or it cannot be seen whether it does, and where the file is not there as
    /// the target sees its files ([`Hazard`]). NativeAOT refuses it with
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
    if !path.starts_with('/') {
        return not_found("the path is not absolute".into());
    }
    if path.contains(':') {
        return not_found("a colon divides two paths".into());
    }
    let Some(view) = view else { return Some(Hazard::StartupUnknown) };
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
