//! Events that a report needs and a recording may lack.

use serde::Serialize;

/// Events, and the command that records them.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Needs {
    pub(crate) what: &'static str,
    pub(crate) command: &'static str,
}

pub(crate) const THREAD_SAMPLES: Needs =
    Needs { what: "samples of threads", command: "dipc trace -p PID --profile dotnet-sampled-thread-time" };
pub(crate) const OFF_CPU: Needs = Needs {
    what: "times off the processors",
    command: "dipc trace -p PID --cpu --off-cpu, on Linux as root or with CAP_PERFMON",
};
pub(crate) const ALLOCATIONS: Needs =
    Needs { what: "allocation events", command: "dipc trace -p PID --profile gc-verbose" };
pub(crate) const LIVE_ALLOCATIONS: Needs = Needs {
    what: "allocations that a collection found alive",
    command: "dipc trace -p PID --profile live-alloc, until some collections have ended (NativeAOT does not report what survives)",
};
pub(crate) const NATIVE_ALLOCATIONS: Needs = Needs {
    what: "native allocations that were not freed",
    command: "dipc trace -p PID --native-alloc, on Linux as root or with CAP_PERFMON and CAP_BPF",
};
pub(crate) const EXCEPTIONS: Needs =
    Needs { what: "exception events", command: "dipc trace -p PID --clrevents exception" };
