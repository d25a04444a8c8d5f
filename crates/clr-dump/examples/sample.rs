//! Prints the methods in which a process spends its processor time. The kernel takes the samples
//! (linux-sampler); this crate unwinds and names the managed code.
//!
//! `cargo run -p clr-dump --features linux-sampler --example sample -- PID SECONDS`

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux {
    use std::collections::BTreeMap;
    use std::error::Error;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use clr_dump::{Address, Dump, FramePosition, ProcessMemory, Runtime, WithCopy};
    use linux_sampler::{
        Processes, RecordKind, Registers, RuntimeUnwinder, SampledFrame, Sampler, SamplerConfig, Unwinder,
    };

    /// The managed code of a process. The sampler may run in a thread of its own.
    #[derive(Debug)]
    struct ManagedCode {
        memory: Arc<ProcessMemory>,
        runtime: Arc<Runtime>,
    }

    impl RuntimeUnwinder for ManagedCode {
        fn caller(&mut self, _pid: i32, frame: &SampledFrame<'_>) -> Option<Registers> {
            // The thread has run on: its stack is that of the sample, everything else that of the process.
            let memory = WithCopy::new(&*self.memory, frame.stack_start, frame.stack);
            let (registers, position) = (frame.registers.into(), frame.position.into());
            self.runtime.code().unwind(&memory, &registers, position).ok()??.to_sampled()
        }

        fn forget(&mut self, _pid: i32) {}
    }

    pub(super) fn run() -> Result<(), Box<dyn Error>> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [pid, seconds] = &arguments[..] else { return Err("usage: sample PID SECONDS".into()) };
        let (pid, seconds) = (pid.parse::<u32>()?, seconds.parse()?);
        let memory = Arc::new(ProcessMemory::open(pid)?);
        let runtime = Arc::new(Runtime::find(&*memory, &memory.files()?)?);

        let pid = i32::try_from(pid)?;
        let mut sampler = Sampler::open(&SamplerConfig::of_process(pid))?;
        let (mut processes, mut unwinder) = (Processes::new(), Unwinder::new());
        processes.of(pid);
        let code = ManagedCode { memory: Arc::clone(&memory), runtime: Arc::clone(&runtime) };
        unwinder = unwinder.with_runtime_unwinder(Box::new(code));

        let dump = Dump::new(&*memory, &runtime);
        let mut methods: BTreeMap<String, Duration> = BTreeMap::new();
        let (mut stack, end) = (Vec::new(), Instant::now() + Duration::from_secs(seconds));
        while Instant::now() < end && sampler.running() > 0 {
            for record in sampler.read(Duration::from_millis(100))? {
                processes.handle(&record);
                let RecordKind::Sample(sample) = record.kind else { continue };
                unwinder.user_stack(record.thread, &sample, &mut processes, &mut stack);
                // The innermost method: native code that it calls is its work.
                let positions =
                    std::iter::once(FramePosition::Innermost).chain(std::iter::repeat(FramePosition::Caller));
                let code = stack.iter().zip(positions).find_map(|(&ip, position)| {
                    runtime.code().find(&*memory, position.lookup_address(Address::new(ip))).ok()?
                });
                let name = code.and_then(|code| dump.types().method(&code)?.name);
                let name = name.map_or_else(
                    || "(native)".to_owned(),
                    |name| format!("{}.{}", name.type_name, name.name),
                );
                *methods.entry(name).or_default() += Duration::from_nanos(sample.period);
            }
        }
        let mut rows: Vec<_> = methods.into_iter().collect();
        rows.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        for (name, time) in rows.iter().take(10) {
            println!("{:>8.3} s {name}", time.as_secs_f64());
        }
        Ok(())
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::run()
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}
