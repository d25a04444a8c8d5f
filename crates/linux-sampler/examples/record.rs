//! Records the samples of a process as a file that `dipc`, PerfView and TraceEvent read.
//!
//! `cargo run -p linux-sampler --features nettrace --example record -- PID SECONDS FILE`

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use linux_sampler::{OffCpu, RecordingWriter, Sampler, SamplerConfig};
    use std::time::{Duration, Instant, SystemTime};

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pid, seconds, path] = &arguments[..] else { return Err("PID SECONDS FILE".into()) };
    let pid = pid.parse()?;
    let config =
        SamplerConfig::of_process(pid).with_frequency(1000).with_off_cpu(OffCpu::Stacks { every: 1 });
    let mut sampler = Sampler::open(&config)?;
    let start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let start_ms = u64::try_from(start.as_millis())?;
    let mut recording = RecordingWriter::new(start_ms, Sampler::now_ns(), Some(pid), &config, "record")?;
    recording.existing_process(pid)?;
    let mut file = std::fs::File::create(path)?;
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    while Instant::now() < end && sampler.running() > 0 {
        for record in sampler.read(Duration::from_millis(200))? {
            recording.record(&record)?;
        }
        recording.drain_to(0, &mut file)?;
    }
    for record in sampler.finish() {
        recording.record(&record)?;
    }
    let counts = recording.finish(Sampler::now_ns())?;
    recording.drain_to(0, &mut file)?;
    println!("{counts:?}");
    Ok(())
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn main() {}
