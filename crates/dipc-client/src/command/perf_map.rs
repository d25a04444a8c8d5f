use dipc_wire::{Command as _, DisablePerfMap, EnablePerfMap, PerfMapType};

use crate::{Error, Hazard, Startup, Target};

/// The first version that survives it.
const SURVIVING_VERSION: u32 = 10;

impl Target {
    /// Begins writing the files that give `perf` the names of jitted code: `perf-{pid}.map`,
    /// `jit-{pid}.dump`, in the target's `/tmp`, with the target's own pid there.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use dipc_client::dipc_wire::PerfMapType;
    ///
    /// target.enable_perf_map(PerfMapType::PERF_MAP)?;
    /// // `perf record -p PID` here: its report has names for jitted code.
    /// target.disable_perf_map()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Blocked if the runtime is suspended and older than .NET 10 ([`Hazard::PerfMapWhileSuspended`]).
    /// NativeAOT refuses it with [`HResult::NOT_SUPPORTED`](crate::HResult::NOT_SUPPORTED).
    pub fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Error> {
        if self.has_safeguards() && self.startup()? == Startup::Suspended {
            let version = match self.info() {
                Ok(info) => info.clr_version.unwrap_or_default(),
                Err(error) if error.is_answer() => String::new(),
                Err(error) => return Err(error),
            };
            if !survives(&version) {
                return Err(self.blocked(EnablePerfMap::NAME, Hazard::PerfMapWhileSuspended { version }));
            }
        }
        self.send_command(&EnablePerfMap { kind }, self.request_deadline())
    }

    /// Ends writing these files; they stay. Without effect on a runtime that writes none.
    pub fn disable_perf_map(&self) -> Result<(), Error> {
        self.send_command(&DisablePerfMap, self.request_deadline())
    }
}

fn survives(version: &str) -> bool {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major >= SURVIVING_VERSION)
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, expected) in
            [("9.0.1", false), ("10.0.5", true), ("11.0.0-preview.1", true), ("", false), ("x", false)]
        {
            assert_eq!(super::survives(version), expected, "{version}");
        }
    }
}
