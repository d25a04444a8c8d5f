use dipc_wire::{EnablePerfMap, HResult, PerfMapType};

use crate::process_view::ProcessView;
use crate::{Error, Target};

impl Target {
    /// Returns whether the process is a NativeAOT program, as far as this can be determined. Such a program
    /// has no sampler and does not list methods.
    ///
    /// No command reports it, and ProcessInfo is the same as CoreCLR's. A process with a known pid and
    /// CoreCLR's libraries or threads is not NativeAOT, and no command is sent. For others the refusal of
    /// perf maps shows it, on Linux: CoreCLR has perf maps there, and refuses them on Windows and macOS, as
    /// Mono does everywhere.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// if target.is_native_aot()? {
    ///     println!("no sampler, and no list of methods");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Errors of the commands. A runtime that knows neither command is not an error.
    pub fn is_native_aot(&self) -> Result<bool, Error> {
        if self.pid().map(ProcessView::of).is_some_and(|view| view.runs_coreclr()) {
            return Ok(false);
        }
        match self.info() {
            Ok(info) if info.os == "Linux" => self.refuses_perf_maps(),
            // The runtime cannot report its system, which is ours if its process runs here.
            Err(Error::Refused { .. }) if cfg!(target_os = "linux") && self.pid().is_some() => {
                self.refuses_perf_maps()
            }
            Ok(_) => Ok(false),
            Err(error) if error.is_answer() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns true if the runtime does not support perf maps: then it answers any request for them with
    /// `NOT_SUPPORTED`, as NativeAOT does. A runtime with perf maps reports another error for type 0.
    fn refuses_perf_maps(&self) -> Result<bool, Error> {
        let no_map = EnablePerfMap { kind: PerfMapType::DISABLED };
        match self.send_command(&no_map, self.request_deadline()) {
            Err(Error::Refused { reason, .. }) => Ok(reason.hresult == HResult::NOT_SUPPORTED),
            Err(Error::UnknownCommand { .. }) | Ok(()) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
