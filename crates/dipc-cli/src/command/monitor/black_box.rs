//! The options of the black boxes of `dipc monitor`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use dipc_monitor::{BlackBoxConfig, BlackBoxEvent, BlackBoxMessage, BlackBoxes, MetricsConfig, Retention};

use crate::duration;
use crate::http::host_name;
use crate::render::escape::escape_controls;
use crate::render::messages;

/// Maximum number of bytes of all bundles together.
const BUNDLES_BYTES: u64 = 1 << 30;

#[derive(Debug, Args)]
pub(super) struct BlackBoxArgs {
    /// Keep the last events of each process in memory for this time; 0s keeps nothing
    ///
    /// Keeps exceptions, garbage collections, changes of the thread pool, and log records of warnings and
    /// above: at most 32 MB per process and 128 MB in total. When a process crashes or is killed, they go
    /// into a bundle. /snapshot returns them at any time.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    keep: Duration,
    /// Directory of the bundles of crashes [default: $STATE_DIRECTORY, else the user's state directory]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    bundles: Option<PathBuf>,
    /// Maximum number of bundles; the oldest are removed
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    keep_bundles: usize,
}

/// Creates the black boxes, unless they are switched off. `metrics` are the counters that are collected
/// anyway.
pub(super) fn start(args: &BlackBoxArgs, metrics: Option<&MetricsConfig>) -> Option<Arc<BlackBoxes>> {
    if args.keep.is_zero() {
        return None;
    }
    let directory = args.bundles.clone().or_else(|| Some(state_directory()?.join("bundles")));
    match &directory {
        Some(directory) => messages::detail(format_args!("Bundles        : {}", directory.display())),
        None => messages::warning("no directory for the bundles of crashes is known: --bundles names one"),
    }
    let retention = Retention::default().with_files(Some(args.keep_bundles)).with_bytes(Some(BUNDLES_BYTES));
    let config = BlackBoxConfig::default()
        .with_time(args.keep)
        .with_directory(directory)
        .with_retention(retention)
        .with_counters(metrics.map(MetricsConfig::request))
        .with_host_name(host_name());
    let log = |message: &BlackBoxMessage| {
        let text = message.to_string();
        let text = escape_controls(&text);
        match &message.event {
            BlackBoxEvent::Crashed { .. } => messages::note(format_args!("Crash          : {text}")),
            _ => messages::warning(text),
        }
    };
    Some(Arc::new(BlackBoxes::new(config, Arc::new(log))))
}

/// The directory for persistent state: the service's (systemd), or the user's.
pub(super) fn state_directory() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(directories) = variable("STATE_DIRECTORY") {
        // A service may have several.
        return std::env::split_paths(&directories).next();
    }
    if let Some(state) = variable("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()) {
        return Some(state.join("dipc"));
    }
    if cfg!(windows) {
        return Some(PathBuf::from(variable("LOCALAPPDATA")?).join("dipc"));
    }
    Some(PathBuf::from(variable("HOME")?).join(".local/state/dipc"))
}
