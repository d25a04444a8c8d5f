use std::time::Duration;

use dipc_transport::Deadline;
use dipc_wire::{AttachProfiler, StartupProfiler};
use uuid::Uuid;

use crate::{Error, Target};

impl Target {
    /// Loads a profiler into the running process, and passes `client_data` to it.
    ///
    /// `path` is the path of its library on the *target's* filesystem; `class` is the class requested from
    /// the library. The runtime waits for the profiler up to `attach_timeout` (in whole milliseconds, at most
    /// 49 days) and answers then; the request's time-out is added to that.
    ///
    /// # Errors
    /// A library that does not exist or cannot be loaded is refused with 0x8007007e; a runtime that is still
    /// suspended refuses with [`HResult::NOT_YET_AVAILABLE`](crate::HResult::NOT_YET_AVAILABLE).
    pub fn attach_profiler(
        &self,
        class: Uuid,
        path: &str,
        attach_timeout: Duration,
        client_data: &[u8],
    ) -> Result<(), Error> {
        let command = AttachProfiler {
            timeout_ms: u32::try_from(attach_timeout.as_millis()).unwrap_or(u32::MAX),
            profiler: class,
            path: path.to_owned(),
            client_data: client_data.to_vec(),
        };
        self.send_command(&command, Deadline::after(self.timeouts().request.saturating_add(attach_timeout)))
    }

    /// Names a profiler for the suspended runtime to load when it is resumed.
    ///
    /// `path` is the path of its library on the *target's* filesystem. Runtimes accept any path, even if they
    /// are already running and it is too late; a library that cannot be loaded is ignored.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().suspended().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use dipc_client::Uuid;
    ///
    /// let class = Uuid::parse_str("cf0d821e-299b-5307-a3d8-b283c03576ad")?;
    /// target.startup_profiler(class, "/opt/profiler.so")?;
    /// target.resume()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn startup_profiler(&self, class: Uuid, path: &str) -> Result<(), Error> {
        let command = StartupProfiler { profiler: class, path: path.to_owned() };
        self.send_command(&command, self.request_deadline())
    }
}
