//! Has a process of .NET 10 write events into the kernel's user_events and into a stream at the same time,
//! while it collects once, and compares them: `cargo run --example user_events -- PID`, as root, on a kernel
//! with user_events. It ends with an error if they differ.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: user_events PID")?;
    comparison::run(pid.parse()?)
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn main() {
    println!("user_events are of Linux");
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod comparison {
    use std::collections::BTreeMap;
    use std::error::Error;
    use std::os::fd::AsFd as _;
    use std::thread;
    use std::time::{Duration, Instant};

    use dipc_client::dipc_wire::{RuntimeEvent, TracepointConfig, UserEventsProviderConfig};
    use dipc_client::{
        EventFilter, Keywords, Providers, RUNTIME_PROVIDER, Rundown, Session, SessionConfig, Target,
    };
    use linux_sampler::{
        RecordKind, Records, Sampler, SamplerConfig, Scope, Tracepoint, USER_EVENTS, open_user_events_data,
    };

    /// Collections, with their threads.
    const EVENTS: &str = "Microsoft-Windows-DotNETRuntime:0x1:4";
    /// A session with these keywords makes the runtime collect.
    const COLLECTION: &str = "Microsoft-Windows-DotNETRuntime:0x800000:4";
    /// GCRestartEEEnd, the last event of a collection.
    const LAST_OF_COLLECTION: u16 = 3;
    const PATIENCE: Duration = Duration::from_secs(60);
    const WAIT: Duration = Duration::from_millis(100);

    /// An event in both forms: thread, number, payload.
    type Seen = (u64, u32, Vec<u8>);

    pub(super) fn run(pid: u32) -> Result<(), Box<dyn Error>> {
        let target = Target::from_pid(pid)?;
        let config = |providers: &str| -> Result<SessionConfig, Box<dyn Error>> {
            Ok(SessionConfig::new(Providers::parse(providers)?).with_rundown(Rundown::Off))
        };
        let stream = target.start_session(&config(EVENTS)?)?;
        let stopper = stream.stopper();
        let stream = thread::spawn(move || read_stream(stream).map_err(|error| error.to_string()));

        let data = open_user_events_data()?;
        // Another name than that of any session before.
        let name = format!("dipc_{pid}_{}", std::process::id());
        let providers = Providers::parse(EVENTS)?.into_iter().map(|provider| UserEventsProviderConfig {
            provider,
            filter: EventFilter::default(),
            tracepoints: TracepointConfig { default_tracepoint: name.clone(), sets: Vec::new() },
        });
        let session = target.start_user_events_session(providers.collect(), Keywords::NONE, data.as_fd())?;
        let tracepoint = Tracepoint::open(USER_EVENTS, &name)?;
        let mut tracepoints =
            ReadTracepoint { tracepoint: tracepoint.clone(), seen: Vec::new(), described: 0 };
        let scope = Scope::Processes(vec![i32::try_from(pid)?]);
        let config_of_sampler =
            SamplerConfig::new(scope).with_frequency(0).with_tracepoints(vec![tracepoint]);
        let mut sampler = Sampler::open(&config_of_sampler)?;
        let begin = Sampler::now_ns();

        let collection = target.start_session(&config(COLLECTION)?)?;
        let start = Instant::now();
        while !tracepoints.seen.iter().any(|(_, id, _)| *id == u32::from(LAST_OF_COLLECTION)) {
            if start.elapsed() > PATIENCE {
                return Err("the runtime did not collect".into());
            }
            tracepoints.take(sampler.read(WAIT)?)?;
        }
        drop(collection);
        tracepoints.take(sampler.read(WAIT)?)?;
        let end = Sampler::now_ns();
        tracepoints.take(sampler.finish())?;
        session.stop()?;
        stopper.request_stop()?;
        let streamed = stream.join().map_err(|_| "the reader of the stream panicked")??;
        let streamed: Vec<_> = streamed
            .into_iter()
            .filter_map(|(time, event)| (begin..=end).contains(&time).then_some(event))
            .collect();
        compare(streamed, tracepoints)
    }

    /// Returns the events of a stream with their times.
    fn read_stream(mut session: Session) -> Result<Vec<(u64, Seen)>, Box<dyn Error>> {
        let mut seen = Vec::new();
        let mut events = session.events()?;
        while let Some(event) = events.next()? {
            if event.provider() == RUNTIME_PROVIDER {
                let payload = event.payload().to_vec();
                seen.push((event.time().0, (event.thread_id().0, event.id(), payload)));
            }
        }
        Ok(seen)
    }

    /// The events of a tracepoint.
    struct ReadTracepoint {
        tracepoint: Tracepoint,
        seen: Vec<Seen>,
        /// Events with metadata.
        described: usize,
    }

    impl ReadTracepoint {
        fn take(&mut self, records: Records<'_>) -> Result<(), Box<dyn Error>> {
            for record in records {
                match record.kind {
                    RecordKind::Tracepoint(event) => {
                        let value = |name| {
                            let value = self.tracepoint.value(name, event.data);
                            value.ok_or_else(|| format!("an event without {name}: {:?}", event.data))
                        };
                        let [id, extension, payload] = RuntimeEvent::FIELDS.map(value);
                        let event = RuntimeEvent::from_fields([id?, extension?, payload?])?;
                        if event.extension.metadata.is_some() {
                            self.described += 1;
                        }
                        let thread = u64::try_from(record.thread.tid)?;
                        self.seen.push((thread, event.id.into(), event.payload.to_vec()));
                    }
                    RecordKind::Lost { count } => return Err(format!("{count} records were lost").into()),
                    _ => {}
                }
            }
            Ok(())
        }
    }

    fn compare(mut streamed: Vec<Seen>, tracepoints: ReadTracepoint) -> Result<(), Box<dyn Error>> {
        let mut counts = BTreeMap::<u32, [usize; 2]>::new();
        for (of, events) in [&streamed, &tracepoints.seen].into_iter().enumerate() {
            for (_, id, _) in events {
                counts.entry(*id).or_default()[of] += 1;
            }
        }
        println!("event  in the stream  in user_events");
        for (id, [in_stream, in_user_events]) in counts {
            println!("{id:5}  {in_stream:13}  {in_user_events:14}");
        }
        println!("{} events had metadata", tracepoints.described);
        // Threads write at the same time.
        let mut seen = tracepoints.seen;
        streamed.sort();
        seen.sort();
        if streamed != seen {
            let only = |one: &[Seen], other: &[Seen]| {
                one.iter().filter(|event| !other.contains(event)).cloned().collect::<Vec<_>>()
            };
            println!("only in the stream: {:?}", only(&streamed, &seen));
            println!("only in user_events: {:?}", only(&seen, &streamed));
            return Err("the events differ".into());
        }
        println!("all {} events are the same in both, with thread and payload", seen.len());
        Ok(())
    }
}
