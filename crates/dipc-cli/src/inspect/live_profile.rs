//! The profile of a stream while it arrives.

use nettrace_export::{Options, Profile, ProfileBuilder};

use crate::exit::{Exit, Failure};
use crate::inspect::live_reader::LiveReader;
use crate::inspect::profile::diagnostics::warn_of_omissions;

/// A profile of a stream while it arrives.
pub(crate) struct LiveProfile {
    pub(crate) reader: LiveReader,
    builder: ProfileBuilder,
}

impl LiveProfile {
    pub(crate) fn new(reader: LiveReader, options: Options) -> Self {
        Self { reader, builder: ProfileBuilder::new(options) }
    }

    /// Takes the events that have arrived.
    pub(crate) fn drain(&mut self) {
        while let Some(event) = self.reader.next() {
            self.builder.add(&event);
        }
    }

    /// Returns the profile, once the stream has ended.
    pub(crate) fn finish(self) -> Result<Profile, Failure> {
        let finished = self.builder.finish(self.reader.events().info());
        let (profile, omissions) = finished.map_err(|error| Failure::new(Exit::Failed, error))?;
        warn_of_omissions(&omissions);
        Ok(profile)
    }
}
