//! The tools: which command each runs, with which parameters.

/// A command as a tool.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The words of the command before its parameters.
    pub(super) words: &'static [&'static str],
    /// In the order of the command line.
    pub(super) parameters: &'static [Parameter],
    pub(super) effect: Effect,
    pub(super) texts: Texts,
}

/// The effect of a tool on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Reads files, or looks at processes.
    Looks,
    /// Writes a file.
    Writes,
    /// Stops or changes a process.
    Controls,
}

/// The texts of a process that an answer can have, apart from names of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    None,
    /// Command lines, in JSON.
    CommandLines,
    /// Those of a recording, which can be redacted.
    Recording,
    /// Contents of memory and events.
    Contents,
}

/// A parameter of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    /// The flag of the command; without one, it is a word of its own.
    pub(super) flag: Option<&'static str>,
    pub(super) presence: Presence,
}

/// Whether a parameter is to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
    /// Offered only where control is allowed.
    Control,
}

/// The values of a parameter.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Integer {
        min: u64,
        max: u64,
    },
    /// A time in seconds, which the command takes in addition to its own.
    Seconds {
        max: u64,
    },
    Text,
    Choice(&'static [&'static str]),
    Switch,
    /// A file that exists.
    File,
    /// A file that is made.
    NewFile,
}

impl Tool {
    /// Returns the parameters that are offered with this permission.
    pub(super) fn parameters(&self, control: bool, files: bool) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().filter(move |parameter| {
            (control || parameter.presence != Presence::Control) && (files || !parameter.kind.is_file())
        })
    }

    /// Returns true if the tool is offered with these permissions.
    pub(super) fn is_offered(&self, control: bool, files: bool, privacy: bool) -> bool {
        let needs_file =
            |parameter: &Parameter| parameter.kind.is_file() && parameter.presence == Presence::Required;
        (control || self.effect != Effect::Controls)
            && (files || !self.parameters.iter().any(needs_file))
            && !(privacy && self.texts == Texts::Contents)
    }
}

impl Kind {
    pub(super) const fn is_file(self) -> bool {
        matches!(self, Self::File | Self::NewFile)
    }
}

/// Finds a tool.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

const fn parameter(
    name: &'static str,
    flag: Option<&'static str>,
    kind: Kind,
    about: &'static str,
) -> Parameter {
    Parameter { name, about, kind, flag, presence: Presence::Optional }
}

const fn required(parameter: Parameter) -> Parameter {
    Parameter { presence: Presence::Required, ..parameter }
}

const fn control(parameter: Parameter) -> Parameter {
    Parameter { presence: Presence::Control, ..parameter }
}

const HEAP_GROUPS: Parameter =
    parameter("by", Some("--by"), Kind::Choice(&["type", "module", "namespace"]), "the groups");
const PID: Parameter = parameter(
    "pid",
    Some("--process-id"),
    Kind::Integer { min: 1, max: u32::MAX as u64 },
    "the process, by its id (tool ps lists them)",
);
const ROWS: Parameter =
    parameter("rows", Some("--rows"), Kind::Integer { min: 1, max: 10_000 }, "the number of rows to show");
const FORMAT: Parameter = parameter(
    "format",
    Some("--format"),
    Kind::Choice(&["table", "json"]),
    "table (the default, shorter) or json (all numbers)",
);
const CORE: Parameter = parameter("core", None, Kind::File, "a core dump, instead of pid");
const RECORDING: Parameter = required(parameter(
    "file",
    None,
    Kind::File,
    "the recording (.nettrace), by its path or name in a folder",
));
const DURATION: Parameter =
    parameter("seconds", Some("--duration"), Kind::Seconds { max: 600 }, "the time to watch");
const FROM: Parameter = parameter(
    "from",
    Some("--from"),
    Kind::Text,
    "only from this time on: 2.5s since the beginning, or a time of day",
);
const TO: Parameter = parameter("to", Some("--to"), Kind::Text, "only until this time");
const IN_RECORDING: Parameter = parameter(
    "pid",
    Some("--pid"),
    Kind::Integer { min: 0, max: u32::MAX as u64 },
    "only this process of a recording of several",
);
const STOP: Parameter = control(parameter(
    "stop_seconds",
    Some("--stop"),
    Kind::Seconds { max: 30 },
    "stop the process while it is read, for at most this time: exact, even of a busy process",
));
const TYPE: Parameter = parameter(
    "type",
    Some("--type"),
    Kind::Text,
    "only types with this text in their name; * matches any text",
);

/// The tool that continues an answer; the server itself has the answers.
pub(super) static MORE: Tool = Tool {
    name: "more",
    about: "Show the next part of an answer that was too long, as its last line states.",
    words: &[],
    parameters: &[
        required(parameter(
            "answer",
            None,
            Kind::Integer { min: 1, max: u64::MAX },
            "the number of the answer",
        )),
        required(parameter("from", None, Kind::Integer { min: 0, max: u64::MAX }, "the byte to begin at")),
    ],
    effect: Effect::Looks,
    texts: Texts::None,
};

/// All tools.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "ps",
        about: "List the .NET processes that can be reached. Begin here; if one is missing, ask doctor.",
        words: &["ps"],
        parameters: &[FORMAT],
        effect: Effect::Looks,
        texts: Texts::CommandLines,
    },
    Tool {
        name: "why",
        about: "Find out what is wrong with a process (5 seconds by default), in a recording or in a core dump: \
                the cause first, in the program's own code. The first question to ask of a slow, stuck, failing \
                or growing process.",
        words: &["why"],
        parameters: &[
            PID,
            parameter("file", None, Kind::File, "a recording or a core dump, instead of pid"),
            DURATION,
            FORMAT,
        ],
        effect: Effect::Looks,
        texts: Texts::Recording,
    },
    Tool {
        name: "doctor",
        about: "Find out why a .NET process cannot be seen or reached, and what this machine permits.",
        words: &["doctor"],
        parameters: &[PID, FORMAT],
        effect: Effect::Looks,
        texts: Texts::None,
    },
    Tool {
        name: "stack",
        about: "Show what each thread does or waits for: the stacks of all threads, each stack once.",
        words: &["stack"],
        parameters: &[
            required(PID),
            parameter(
                "exact",
                Some("--exact"),
                Kind::Switch,
                "read the stacks from memory, without a session: all threads at once, and deadlocked runtimes",
            ),
            STOP,
            FORMAT,
        ],
        effect: Effect::Looks,
        texts: Texts::None,
    },
    Tool {
        name: "locks",
        about: "Show held locks, the threads that wait for one another, and deadlocks.",
        words: &["locks"],
        parameters: &[PID, CORE, FORMAT],
        effect: Effect::Looks,
        texts: Texts::None,
    },
    Tool {
        name: "async",
        about: "Show the async methods that have not ended, what each waits for, and what waits for it.",
        words: &["async"],
        parameters: &[PID, CORE, TYPE, ROWS, FORMAT],
        effect: Effect::Looks,
        texts: Texts::None,
    },
    Tool {
        name: "top",
        about: "Show the methods, threads and counters that were active in the time of a watch.",
        words: &["top", "--plain", "--count=1"],
        parameters: &[
            required(PID),
            parameter(
                "seconds",
                Some("--refresh-interval"),
                Kind::Integer { min: 1, max: 60 },
                "the time to watch",
            ),
            parameter("alloc", Some("--alloc"), Kind::Switch, "also the types that are allocated"),
            ROWS,
        ],
        effect: Effect::Looks,
        texts: Texts::None,
    },
    Tool {
        name: "counters",
        about: "Show the counters of a process, each second: CPU, memory, collections, thread pool, requests.",
        words: &["counters", "monitor", "--plain"],
        parameters: &[
            required(PID),
            required(DURATION),
            parameter(
                "counters",
                Some("--counters"),
                Kind::Text,
                "providers and meters, separated by commas: System.Runtime,Microsoft.AspNetCore.Hosting",
            ),
        ],
        effect: Effect::Looks,
        texts: Texts::Contents,
    },
    Tool {
        name: "memory",
        about: "Show the resident memory of a process or a core dump by owner: heap, code, files, stacks, malloc. \
                The first line names the largest owner.",
        words: &["memory"],
        parameters: &[
            PID,
            CORE,
            parameter("parts", Some("--parts"), Kind::Switch, "also the parts of each owner"),
            ROWS,
            FORMAT,
        ],
        effect: Effect::Looks,
        texts: Texts::None,
    },
    Tool {
        name: "heap",
        about: "Show the managed heap of a process by type, with retained sizes, from its memory.",
        words: &["heap"],
        parameters: &[
            required(PID),
            HEAP_GROUPS,
            parameter("sort", Some("--sort"), Kind::Choice(&["bytes", "objects", "retained"]), "the order"),
            ROWS,
            STOP,
            FORMAT,
        ],
        effect: Effect::Looks,
        texts: Texts::None,
    },
    Tool {
        name: "heap_file",
        about: "Show the contents of a .gcdump file by type, with retained sizes.",
        words: &["gcdump", "report"],
        parameters: &[required(parameter("file", None, Kind::File, "a .gcdump file")), HEAP_GROUPS, ROWS],
        effect: Effect::Looks,
        texts: Texts::None,
    },
    Tool {
        name: "dump_analyze",
        about: "Show a view of a core dump, or of a running process's memory. generations: the heap's \
                fragmentation and pins; paths: what keeps the objects of a type alive (needs type or address); \
                tasks, timers, threadpool, channels: queued and pending work.",
        words: &["dump", "analyze"],
        parameters: &[
            PID,
            CORE,
            required(parameter(
                "view",
                None,
                Kind::Choice(&[
                    "threads",
                    "stacks",
                    "heap",
                    "generations",
                    "finalizers",
                    "paths",
                    "objects",
                    "handles",
                    "memory",
                    "locks",
                    "async",
                    "threadpool",
                    "timers",
                    "channels",
                    "tasks",
                    "modules",
                ]),
                "the view",
            )),
            TYPE,
            parameter(
                "address",
                Some("--object"),
                Kind::Text,
                "for paths: the object's address, in hexadecimal",
            ),
            ROWS,
            FORMAT,
        ],
        effect: Effect::Looks,
        texts: Texts::None,
    },
    Tool {
        name: "dump_contents",
        about: "Show contents of a core dump, or of a running process's memory. exceptions: with messages and \
                causes; requests: HTTP requests and SQL Server commands that have not ended, with URL or text, age, \
                state and code; object: the fields of one object (needs address); strings; statics.",
        words: &["dump", "analyze"],
        parameters: &[
            PID,
            CORE,
            required(parameter(
                "view",
                None,
                Kind::Choice(&["exceptions", "object", "requests", "strings", "statics"]),
                "the view",
            )),
            parameter("address", None, Kind::Text, "for object: its address, in hexadecimal"),
            parameter(
                "type",
                Some("--type"),
                Kind::Text,
                "for statics: only types with this text in their name",
            ),
            parameter("grep", Some("--grep"), Kind::Text, "for strings: only those with this text"),
            ROWS,
            FORMAT,
        ],
        effect: Effect::Looks,
        texts: Texts::Contents,
    },
    Tool {
        name: "profile",
        about: "Record everything about a process: CPU, waits, allocations, locks, requests; ends in an overview. \
                Then ask why and report of the file.",
        words: &["profile", "--format=nettrace"],
        parameters: &[
            required(PID),
            required(parameter(
                "output",
                Some("--output"),
                Kind::NewFile,
                "the name of the new recording in a folder, NAME.nettrace",
            )),
            required(DURATION),
        ],
        effect: Effect::Writes,
        texts: Texts::None,
    },
    Tool {
        name: "report",
        about: "Show a report of a recording; without one, an overview of all. topN: the methods that took most, \
                by CPU, waits, allocations and more; stacks: the call tree; requests: where their time went.",
        words: &["report"],
        parameters: &[
            RECORDING,
            parameter(
                "report",
                None,
                Kind::Choice(&[
                    "topN",
                    "stacks",
                    "requests",
                    "gc",
                    "alloc",
                    "exceptions",
                    "contention",
                    "threadpool",
                    "startup",
                    "jit",
                    "events",
                ]),
                "the report",
            ),
            parameter(
                "by",
                Some("--by"),
                Kind::Choice(&[
                    "cpu",
                    "off-cpu",
                    "wall",
                    "alloc",
                    "live-alloc",
                    "native-alloc",
                    "contention",
                    "exception",
                    "wait",
                    "gc",
                ]),
                "for topN and stacks: the measure",
            ),
            parameter("inclusive", Some("--inclusive"), Kind::Switch, "for topN: with the methods' callees"),
            ROWS,
            FROM,
            TO,
            IN_RECORDING,
            FORMAT,
        ],
        effect: Effect::Looks,
        texts: Texts::Recording,
    },
    Tool {
        name: "events",
        about: "Print events of a recording with their fields and, on request, stacks.",
        words: &["events"],
        parameters: &[
            RECORDING,
            parameter("provider", Some("--provider"), Kind::Text, "only events of this provider"),
            parameter(
                "event",
                Some("--event"),
                Kind::Text,
                "only this event, by name or id: GC/AllocationTick",
            ),
            required(parameter(
                "head",
                Some("--head"),
                Kind::Integer { min: 1, max: 100_000 },
                "the number of events to print",
            )),
            parameter("stacks", Some("--stacks"), Kind::Switch, "with the stack of each event"),
            FROM,
            TO,
            IN_RECORDING,
        ],
        effect: Effect::Looks,
        texts: Texts::Contents,
    },
    Tool {
        name: "diff",
        about: "Compare two recordings (what became slower, allocates more or waits longer, beyond noise), two \
                heaps (.gcdump) or two snapshots of memory.",
        words: &["diff"],
        parameters: &[
            required(parameter("base", None, Kind::File, "the one before")),
            required(parameter("new", None, Kind::File, "the one after")),
            parameter(
                "per",
                Some("--per"),
                Kind::Choice(&["second", "request", "run", "share"]),
                "the amounts that are compared",
            ),
            ROWS,
            FORMAT,
        ],
        effect: Effect::Looks,
        texts: Texts::Recording,
    },
    Tool {
        name: "help",
        about: "Show a chapter of the book or the help of a command. By symptom: slow, leak, crash, hang, \
                starvation, high-cpu, memory; topics lists all.",
        words: &["help"],
        parameters: &[required(parameter("topic", None, Kind::Text, "the topic or command"))],
        effect: Effect::Looks,
        texts: Texts::None,
    },
    Tool {
        name: "dump",
        about: "Write a core dump of a process, which stops until its memory is copied.",
        words: &["dump", "--stream"],
        parameters: &[
            required(PID),
            parameter(
                "content",
                Some("--type"),
                Kind::Choice(&["full", "heap", "mini"]),
                "the memory it has",
            ),
            required(parameter(
                "output",
                Some("--output"),
                Kind::NewFile,
                "the name of the new dump in a folder",
            )),
        ],
        effect: Effect::Controls,
        texts: Texts::None,
    },
    Tool {
        name: "collect_heap",
        about: "Write a .gcdump file of a process's managed heap: makes the runtime collect its garbage.",
        words: &["gcdump", "collect"],
        parameters: &[
            required(PID),
            required(parameter(
                "output",
                Some("--output"),
                Kind::NewFile,
                "the name of the new file in a folder, NAME.gcdump",
            )),
        ],
        effect: Effect::Controls,
        texts: Texts::None,
    },
];
