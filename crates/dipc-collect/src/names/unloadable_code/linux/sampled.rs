//! Names of sampled methods, read from the memory of processes while they run.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clr_dump::{Address, Code, Dump, Method, Module};
use linux_sampler::RecordingWriter;

use super::UnloadableCode;
use super::writer::NamesWriter;

/// Maximum number of processes to read.
const MAX_PROCESSES: usize = 256;
/// Maximum number of methods of all processes.
const MAX_METHODS: usize = 1 << 15;
/// Maximum number of addresses that wait for the runtime of a process to be found.
const MAX_WAITING: usize = 1 << 14;
/// Maximum number of searches for the runtime of a process, which may not be loaded yet.
const MAX_SEARCHES: u32 = 8;
/// The time between the first two searches; it doubles.
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// The part of the time that a process is known, after which its memory is read again, and the maximum: each
/// time the metadata of modules with new methods is read, which has megabytes.
const READ_PART: u32 = 4;
const MAX_READ_DELAY: Duration = Duration::from_secs(10);

/// Names of sampled methods, read from the memory of processes while they run: those that end early have no
/// others.
#[derive(Debug, Default)]
pub struct SampledNames {
    /// By the id in the recording.
    processes: HashMap<u64, SampledMethods>,
    /// The number of methods of all processes.
    methods: usize,
}

#[derive(Debug)]
struct SampledMethods {
    pid: u32,
    /// `None` before its runtime is found.
    code: Option<UnloadableCode>,
    searches: u32,
    next_search: Instant,
    /// The time of the first address, and of the next read.
    since: Instant,
    next_read: Instant,
    /// The addresses that were not looked up yet.
    waiting: Vec<u64>,
    /// The methods, by the first address of each.
    methods: BTreeMap<u64, SampledMethod>,
    /// The modules of the methods, by address, without their metadata.
    modules: HashMap<Address, Arc<Module>>,
}

#[derive(Debug)]
struct SampledMethod {
    code: Code,
    method: Method,
    /// The last known address; `None` if the recording has no sample of it.
    last: Option<u64>,
}

impl SampledMethods {
    fn new(pid: u32) -> Self {
        let now = Instant::now();
        Self {
            pid,
            code: None,
            searches: 0,
            next_search: now,
            since: now,
            next_read: now,
            waiting: Vec::new(),
            methods: BTreeMap::new(),
            modules: HashMap::new(),
        }
    }

    /// Returns true if its addresses are to be looked up now: a process that is new may end soon.
    fn is_due(&self, now: Instant) -> bool {
        !self.waiting.is_empty() && (now >= self.next_read || self.waiting.len() >= MAX_WAITING / 2)
    }

    /// Looks up the addresses that wait, if the runtime is found. Returns the number of methods that are new,
    /// of which there may be `room`.
    fn read(&mut self, room: usize) -> usize {
        let now = Instant::now();
        if self.code.is_none() && self.searches < MAX_SEARCHES && now >= self.next_search {
            self.code = UnloadableCode::of_process(self.pid);
            self.next_search = now + FIRST_DELAY * 2_u32.pow(self.searches);
            self.searches += 1;
        }
        let Some(UnloadableCode { memory, runtime }) = &self.code else { return 0 };
        self.next_read = now + (now.saturating_duration_since(self.since) / READ_PART).min(MAX_READ_DELAY);
        let dump = Dump::new(memory, runtime);
        let mut new = 0;
        for address in self.waiting.drain(..) {
            let Ok(Some(code)) = runtime.code().find(memory, Address::new(address)) else { continue };
            let begin = code.function.begin;
            // Another method may have taken the place of one that was freed.
            let known = self.methods.get_mut(&begin).filter(|known| known.code == code);
            if let Some(known) = known {
                known.last = Some(known.last.map_or(address, |last| last.max(address)));
            } else if new < room
                && let Some(mut method) = dump.types().method(&code)
            {
                method.module = method.module.map(|module| own_module(&mut self.modules, &module));
                let method = SampledMethod { code, method, last: Some(address) };
                new += usize::from(self.methods.insert(begin, method).is_none());
            }
        }
        new
    }
}

/// Returns the module of a method among those of its process, without metadata.
fn own_module(modules: &mut HashMap<Address, Arc<Module>>, module: &Module) -> Arc<Module> {
    let known = modules.get(&module.address).filter(|known| known.path == module.path);
    let own = known.map_or_else(|| Arc::new(module.without_metadata()), Arc::clone);
    modules.insert(module.address, Arc::clone(&own));
    own
}

impl SampledNames {
    /// Adds sampled addresses of a process, which has an id in the recording.
    pub fn add(&mut self, pid: u32, id: u64, addresses: &[u64]) {
        if !self.processes.contains_key(&id) && self.processes.len() >= MAX_PROCESSES {
            return;
        }
        let process = self.processes.entry(id).or_insert_with(|| SampledMethods::new(pid));
        let room = MAX_WAITING.saturating_sub(process.waiting.len());
        process.waiting.extend(addresses.iter().take(room));
    }

    /// Reads the names of the methods at the added addresses, as far as their runtimes are found, and it is
    /// time to: the longer a process runs, the less often.
    pub fn read(&mut self) {
        let now = Instant::now();
        self.read_those(|process| process.is_due(now));
    }

    /// Closes the memory of a process that has ended, or has become another program. The names that were read
    /// stay.
    pub fn ended(&mut self, pid: u32) {
        for process in self.processes.values_mut().filter(|process| process.pid == pid) {
            let now = Instant::now();
            (process.code, process.searches) = (None, 0);
            (process.next_search, process.since, process.next_read) = (now, now, now);
            process.waiting.clear();
        }
    }

    /// Reads the names of the methods at all added addresses.
    pub fn read_all(&mut self) {
        self.read_those(|process| !process.waiting.is_empty());
    }

    fn read_those(&mut self, is_due: impl Fn(&SampledMethods) -> bool) {
        for process in self.processes.values_mut().filter(|process| is_due(process)) {
            self.methods += process.read(MAX_METHODS.saturating_sub(self.methods));
        }
    }

    /// Writes the names of the methods of the processes for whose ids `is_wanted` returns true into a
    /// recording. Returns the number of processes with names.
    ///
    /// # Errors
    /// If a name is larger than the format can say.
    pub fn write(
        &self,
        recording: &mut RecordingWriter,
        is_wanted: impl Fn(u64) -> bool,
    ) -> Result<usize, nettrace_writer::Error> {
        let has_names = |process: &SampledMethods| process.methods.values().any(|it| it.last.is_some());
        let wanted = self.processes.iter().filter(|(id, process)| is_wanted(**id) && has_names(process));
        let mut wanted: Vec<_> = wanted.collect();
        wanted.sort_unstable_by_key(|(id, _)| **id);
        if wanted.is_empty() {
            return Ok(0);
        }
        let mut names = NamesWriter::new(recording)?;
        for (id, process) in &wanted {
            names.begin(**id)?;
            for (begin, SampledMethod { method, last, .. }) in &process.methods {
                if let Some(last) = last {
                    names.add(method, *begin..last.saturating_add(1))?;
                }
            }
        }
        Ok(wanted.len())
    }

    /// Returns the names for a recording that follows: without samples so far, and without the processes for
    /// which `is_kept` returns false. Runtimes that were found, and names that were read, are not read again.
    #[must_use]
    pub fn following(self, is_kept: impl Fn(u32) -> bool) -> Self {
        // Many names that were used once have to make room.
        let keeps_methods = self.methods < MAX_METHODS / 2;
        let mut next = Self::default();
        let mut kept: Vec<_> = self.processes.into_values().filter(|process| is_kept(process.pid)).collect();
        // Of several processes with a number, the last is the one that runs.
        kept.sort_by_key(|process| process.next_search);
        for mut process in kept {
            process.waiting.clear();
            if keeps_methods {
                process.methods.values_mut().for_each(|method| method.last = None);
            } else {
                process.methods.clear();
                process.modules.clear();
            }
            next.processes.insert(process.pid.into(), process);
        }
        next.methods = next.processes.values().map(|process| process.methods.len()).sum();
        next
    }
}
