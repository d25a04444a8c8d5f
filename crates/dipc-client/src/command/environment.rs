use dipc_wire::{Command as _, Environment, ProcessEnvironment, SetEnvironmentVariable};

use crate::{Error, Hazard, Target};

/// Maximum size of an environment to read, in bytes. Linux allows a process 6 MB, which UTF-16 doubles.
const ENVIRONMENT_LIMIT: u32 = 64 << 20;

impl Target {
    /// Returns the environment of the process, as `NAME=value` in its own order, including changes since its
    /// start.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// for variable in target.environment()? {
    ///     println!("{variable}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn environment(&self) -> Result<Vec<String>, Error> {
        let deadline = self.request_deadline();
        let Some((reply, mut exchange)) = self.try_request(&ProcessEnvironment, deadline)? else {
            return Err(self.unknown_command(ProcessEnvironment::NAME));
        };
        let announced = reply.incoming_bytes;
        if announced > ENVIRONMENT_LIMIT {
            let (address, limit) = (self.address().clone(), ENVIRONMENT_LIMIT);
            return Err(Error::EnvironmentTooLarge { address, announced, limit });
        }
        let bytes = exchange.receive_rest(announced as usize, deadline)?;
        let environment =
            Environment::<Vec<String>>::from_bytes(&bytes).map_err(|error| exchange.bad_reply(error))?;
        Ok(environment.0)
    }

    /// Sets an environment variable of the process, also to the empty string (`Some("")`), or removes it
    /// (`None`).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// target.set_environment_variable("MY_LEVEL", Some("debug"))?;
    /// target.set_environment_variable("MY_LEVEL", None)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a name that is empty or contains `=`. Removing a variable that does not
    /// exist is refused with 0x800700cb; removing one from a program that [may be
    /// NativeAOT](Self::is_native_aot) is blocked ([`Hazard::UnsetInNativeAot`]).
    pub fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        const NAME: &str = SetEnvironmentVariable::<String, Option<String>>::NAME;
        if name.is_empty() || name.contains('=') {
            let what = format!("{name:?} cannot be the name of a variable");
            return Err(Error::OutOfRange { command: NAME, what });
        }
        if value.is_none() && self.has_safeguards() && self.is_native_aot()? {
            return Err(self.blocked(NAME, Hazard::UnsetInNativeAot));
        }
        let command = SetEnvironmentVariable { name: name.to_owned(), value: value.map(str::to_owned) };
        self.send_command(&command, self.request_deadline())
    }
}
