//! `dipc` against real .NET runtimes, and against peers that misbehave as no real one does on request.
//!
//! The workload compiled ahead of time is in the repository, so on x86-64 Linux one real runtime is always
//! there. The others are where `cargo xtask runtimes` puts them (or in `$DIPC_RUNTIMES`); tests for one that
//! is missing say so, and fail if `$DIPC_REQUIRE_RUNTIMES` is set.

#![cfg(unix)]

mod bad_files;
mod bad_peers;
mod bad_targets;
mod channels;
mod completions;
mod control;
mod converted;
mod counters;
mod counts;
mod cpu;
mod crash_handler;
mod cut_core;
mod database_commands;
mod disk;
mod doctor;
mod dump;
mod dump_commands;
mod ephemeral;
mod event_names;
mod executable;
mod exporters;
mod flight;
mod foreign_sessions;
mod gcdump;
mod generations;
mod incidents;
mod interruption;
mod joined;
mod library;
mod lines;
mod listing;
mod live_alloc;
mod live_events;
mod long_command_line;
mod loss;
mod lost_filters;
mod machine;
mod made_types;
#[cfg(feature = "mcp")]
mod mcp;
mod memory;
mod memory_growth;
mod memory_owners;
mod monitor;
mod monitor_faults;
mod monitor_kinds;
mod monitor_otlp;
mod monitor_profile;
mod names;
mod native_alloc;
mod nobody;
mod open_requests;
mod outputs;
mod overview;
#[path = "../page/data.rs"]
mod page_data;
mod pool;
mod ports;
mod profile;
mod program;
mod push;
mod requests;
mod runtime;
mod scale;
mod seccomp;
mod single_file;
mod stack_roots;
mod stacks;
mod static_fields;
mod stopping;
mod streamed_dump;
mod stripped_dump;
mod structures;
mod suspended;
mod thread_times;
mod top;
mod traced;
mod values;
mod vanishing;
mod variables;
mod view;
mod waits;
mod web_server;
mod why;
mod workload;
