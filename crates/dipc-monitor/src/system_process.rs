//! The process of a runtime on this machine.

use dipc_client::ProcessView;
use dipc_client::dipc_transport::start_key;

/// A process of this machine. The start time distinguishes it from a later process with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SystemProcess {
    pid: u32,
    start_key: u64,
}

impl SystemProcess {
    /// Returns the process `pid`, if its runtime can be the one that states the pid `stated`, in its
    /// innermost pid namespace. Otherwise the process forwards the connections of a runtime that may be
    /// anywhere.
    pub(crate) fn of(pid: u32, stated: Option<u64>) -> Option<Self> {
        let process = Self { pid, start_key: start_key(pid).ok()? };
        // Systems without namespaces do not state it.
        let own_id = ProcessView::of(pid).own_id();
        own_id.zip(stated).is_none_or(|(own, stated)| own == stated).then_some(process)
    }

    /// Returns the pid, if it is still that of this process.
    pub(crate) fn pid(self) -> Option<u32> {
        (start_key(self.pid).ok()? == self.start_key).then_some(self.pid)
    }

    /// Returns true if it is known to have ended.
    pub(crate) fn has_ended(self) -> bool {
        use dipc_client::dipc_transport::Error;

        match start_key(self.pid) {
            Ok(key) => key != self.start_key,
            // Other errors, such as too many open files, are not evidence.
            Err(error) => matches!(error, Error::NoSuchProcess { .. }),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_pid_belongs_to_one_process() {
        let own = std::process::id();
        let process = SystemProcess::of(own, Some(own.into())).unwrap();
        assert_eq!((process.pid(), process.has_ended()), (Some(own), false));
        // A runtime with forwarded connections.
        assert_eq!(SystemProcess::of(own, Some(u64::from(own) + 1)), None);
        // Another process has its pid now.
        let before = SystemProcess { start_key: process.start_key.wrapping_sub(1), ..process };
        assert_eq!((before.pid(), before.has_ended()), (None, true));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = SystemProcess::of(child.id(), None).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((process.pid(), process.has_ended()), (None, true));
        assert_eq!(SystemProcess::of(child.id(), None), None);
    }
}
