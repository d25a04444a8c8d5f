//! Recordings of a made-up runtime with one module.

use nettrace_synth::Value;
use nettrace_synth::clr::{self, Kind, Method, kind};

pub(crate) const LOAD: Kind = kind::METHOD_LOAD_VERBOSE;
pub(crate) const UNLOAD: Kind = kind::METHOD_UNLOAD_VERBOSE;
pub(crate) const NAMELESS_LOAD: Kind = kind::METHOD_LOAD;
pub(crate) const RUNDOWN: Kind = kind::METHOD_DC_END_VERBOSE;

/// Writes events one by one, all of them by one thread.
pub(crate) struct Recording(clr::Recording);

impl Default for Recording {
    fn default() -> Self {
        let mut recording = clr::Recording::new();
        recording.thread(7).written_by(7);
        Self(recording)
    }
}

impl Recording {
    pub(crate) fn event(&mut self, kind: Kind, time: u64, values: &[Value]) -> &mut Self {
        self.event_of_thread(kind, 7, time, values)
    }

    pub(crate) fn event_of_thread(&mut self, kind: Kind, id: u64, time: u64, values: &[Value]) -> &mut Self {
        self.0.at(time).thread(id).event(kind, values);
        self
    }

    /// A runtime's description of a range of code, with an id for each length of names.
    pub(crate) fn method(&mut self, kind: Kind, time: u64, start: u64, size: u32, name: &str) -> &mut Self {
        let (id, flags, signature) = (name.len() as u64, 0x188, "instance void  (int32)");
        let method = Method { id, size, flags, signature, ..Method::new(start, "App.Type", name) };
        let values = if kind == NAMELESS_LOAD { method.nameless() } else { method.verbose() };
        self.event(kind, time, &values)
    }

    pub(crate) fn module(&mut self, time: u64, id: u64, path: &str) -> &mut Self {
        self.event(kind::MODULE_DC_END, time, &clr::module(id, path))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.bytes()
    }
}
