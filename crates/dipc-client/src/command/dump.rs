use std::path::{Path, PathBuf};

use dipc_transport::Deadline;
use dipc_wire::{Command as _, DumpFlags, DumpType, GenerateCoreDump1, GenerateCoreDump2, GenerateCoreDump3};

use crate::optional_feature::drop_unsupported;
use crate::process_view::ProcessView;
use crate::{Error, Hazard, OptionalFeature, Target};

/// The options of a core dump, which a process writes of itself.
///
/// ```
/// use dipc_client::{Dump, OptionalFeature};
/// use dipc_client::dipc_wire::{DumpFlags, DumpType};
///
/// let dump = Dump::new("/dumps/core.%p")
///     .with_dump_type(DumpType::WITH_HEAP)
///     .with_flags(DumpFlags::CRASH_REPORT)
///     .with_optional(vec![OptionalFeature::CrashReport]);
/// assert_eq!(dump.path, "/dumps/core.%p");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dump {
    /// The path of the file among the *target's* files, written by the target's user. A relative path starts
    /// at the target's working directory. `%p` and similar are replaced as in `DOTNET_DbgMiniDumpName` (`%p`
    /// by the pid, in .NET Core 3.1 in hexadecimal), `%%` is a percent sign.
    pub path: String,
    /// The memory in the dump; all by default. Single-file programs write no other dump.
    pub dump_type: DumpType,
    /// The options of writing; none by default. Logging goes to the console of the *target*, and the dump
    /// waits while that is full.
    pub flags: DumpFlags,
    /// The options to drop if the runtime is too old for them; none by default.
    pub optional: Vec<OptionalFeature>,
}

/// A dump that the runtime reports as written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenDump {
    /// The form of GenerateCoreDump that the runtime accepted.
    pub command: &'static str,
    /// The options that were dropped.
    pub dropped_features: Vec<OptionalFeature>,
    /// The file as reached from here; `None` if it is not visible from here, or its name contains `%`.
    pub file: Option<PathBuf>,
    /// The length of that file in bytes.
    pub bytes: Option<u64>,
}

impl Dump {
    /// A dump of all memory of the process, to a path on the target's filesystem.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            dump_type: DumpType::default(),
            flags: DumpFlags::NONE,
            optional: Vec::new(),
        }
    }

    /// The same dump with another [`dump_type`](Self::dump_type).
    #[must_use]
    pub fn with_dump_type(self, dump_type: DumpType) -> Self {
        Self { dump_type, ..self }
    }

    /// The same dump with another [`flags`](Self::flags).
    #[must_use]
    pub fn with_flags(self, flags: DumpFlags) -> Self {
        Self { flags, ..self }
    }

    /// The same dump with another [`optional`](Self::optional).
    #[must_use]
    pub fn with_optional(self, optional: Vec<OptionalFeature>) -> Self {
        Self { optional, ..self }
    }

    fn check(&self) -> Result<(), String> {
        const FLAGS: u32 = DumpFlags::LOGGING.0 | DumpFlags::VERBOSE_LOGGING.0 | DumpFlags::CRASH_REPORT.0;
        if self.path.is_empty() {
            return Err("a dump needs a path".into());
        }
        if self.dump_type.name().is_none() {
            return Err(format!("{} is not known", self.dump_type));
        }
        if self.flags.0 & !FLAGS != 0 {
            return Err(format!("the dump flags {:#x} are not known", self.flags.0 & !FLAGS));
        }
        Ok(())
    }

    /// The used options that not every form supports, each with the first form that supports it.
    fn optional_features(&self) -> Vec<(OptionalFeature, u8)> {
        let flags = [
            (DumpFlags::VERBOSE_LOGGING, OptionalFeature::VerboseLogging),
            (DumpFlags::CRASH_REPORT, OptionalFeature::CrashReport),
        ];
        let wanted = flags.into_iter().filter(|(flag, _)| self.flags.contains(*flag));
        wanted.map(|(_, feature)| (feature, 2)).collect()
    }
}

impl Target {
    /// Has the process write a core dump of itself, with the newest of GenerateCoreDump3, 2 and 1 that the
    /// runtime knows.
    ///
    /// The process is suspended meanwhile, and its runtime answers no other client: up to
    /// [`Timeouts::dump`](crate::Timeouts).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use dipc_client::Dump;
    /// use dipc_client::dipc_wire::DumpType;
    ///
    /// let path = std::env::temp_dir().join("core");
    /// target.dump(&Dump::new(path.to_str().expect("a path")).with_dump_type(DumpType::WITH_HEAP))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedOption`] if only a newer form has an option. Blocked if the runtime cannot start
    /// its `createdump` ([`Hazard::NoCreateDump`]), and for a single-file program of .NET 8 or 9
    /// ([`Hazard::DumpInSingleFile`]). [`Error::Refused`] carries the runtime's own message since .NET 7.
    pub fn dump(&self, dump: &Dump) -> Result<WrittenDump, Error> {
        let out_of_range = |what| Error::OutOfRange { command: GenerateCoreDump1::<String>::NAME, what };
        dump.check().map_err(out_of_range)?;
        let view = self.view()?;
        if self.has_safeguards()
            && let Some(view) = &view
            && let Some(hazard) = self.dump_hazard(view)
        {
            return Err(self.blocked(GenerateCoreDump1::<String>::NAME, hazard));
        }
        let (command, dropped_features) = self.write_dump(dump)?;
        let view = view.filter(|_| !dump.path.contains('%'));
        let file = view.and_then(|view| view.locate(Path::new(&dump.path)).ok());
        let bytes = file.as_ref().and_then(|file| file.metadata().ok()).map(|metadata| metadata.len());
        Ok(WrittenDump { command, dropped_features, file, bytes })
    }

    /// Returns the harm that a dump would do to the process; `None` if none is known.
    fn dump_hazard(&self, view: &ProcessView) -> Option<Hazard> {
        if !view.contains_coreclr() {
            return view.createdump_hazard();
        }
        let version = self.info().ok()?.clr_version?;
        Hazard::of_dump_in_single_file(&version)
    }

    /// Requests the dump in the newest form that the runtime knows; returns that form and the options that
    /// were dropped.
    fn write_dump(&self, dump: &Dump) -> Result<(&'static str, Vec<OptionalFeature>), Error> {
        let deadline = || Deadline::after(self.timeouts().dump);
        let (path, dump_type, flags) = (dump.path.as_str(), dump.dump_type, dump.flags);
        if self.try_command(&GenerateCoreDump3 { path, dump_type, flags }, deadline())?.is_some() {
            return Ok((GenerateCoreDump3::<String>::NAME, Vec::new()));
        }
        if self.try_command(&GenerateCoreDump2 { path, dump_type, flags }, deadline())?.is_some() {
            return Ok((GenerateCoreDump2::<String>::NAME, Vec::new()));
        }
        let dropped_features =
            drop_unsupported(&dump.optional_features(), 1, &dump.optional).map_err(|(feature, _)| {
                Error::UnsupportedOption {
                    command: GenerateCoreDump2::<String>::NAME,
                    address: self.address().clone(),
                    feature,
                }
            })?;
        let flags = DumpFlags(flags.0 & DumpFlags::LOGGING.0);
        self.send_command(&GenerateCoreDump1 { path, dump_type, flags }, deadline())?;
        Ok((GenerateCoreDump1::<String>::NAME, dropped_features))
    }
}
