//! Recordings of the last events, and recordings in one file after the other.

use std::fmt;

use dipc_client::{Session, Startup};
use dipc_collect::staged::folder_of;
use dipc_wire::Level;
use jiff::Zoned;

use super::RecordingSettings;
use super::file_names::{file_name, snapshot_name, with_pid};
use crate::duration;
use crate::exit::{Exit, Outcome};
use crate::record::flight::{CrashDump, FileNames, FlightRecorder, FlightSummary, RotatingRecorder};
use crate::record::recorder;
use crate::record::session::resume;
use crate::record::source::Source;
use crate::render::{messages, units};

impl RecordingSettings {
    /// Runs the flight recorder on a session: keeps the last events and writes them when there is a reason
    /// to, or writes one file after the other.
    pub(super) fn watch(&self, source: &Source, session: Session, beside_others: bool) -> Outcome {
        let limits = self.limits(source);
        let (output, name, pid) = (self.output.clone(), source.name.clone(), source.pid);
        let file_name: FileNames = Box::new(move || match (&output, pid.filter(|_| beside_others)) {
            (Some(path), Some(pid)) => snapshot_name(&with_pid(path, pid), &Zoned::now()),
            (Some(path), None) => snapshot_name(path, &Zoned::now()),
            (None, _) => file_name(name.as_deref().unwrap_or("trace"), pid, &Zoned::now()),
        });
        let stopping_event = self.stopping_event.clone();
        let lists_methods = self.keeps_names && self.lists_methods();
        let is_starting =
            lists_methods && source.target.startup().is_ok_and(|startup| startup == Startup::Suspended);
        let needs_help = self.selection.level_of_methods() == Some(Level::INFORMATIONAL);
        let begin = |what: fmt::Arguments<'_>| {
            if self.resume {
                resume(&source.target);
            }
            source.announce();
            messages::note(what);
        };
        let (end, summary) = if let Some(flight) = &self.flight {
            let capacity = flight.capacity;
            let mut recorder = FlightRecorder::new(
                flight.clone(),
                self.interrupts.clone(),
                stopping_event,
                self.duration,
                file_name,
            );
            if lists_methods {
                recorder.list_methods(&source.target, needs_help, is_starting);
            }
            // A followed runtime is not the program that dipc started.
            let dump = self.crash_dump.map(|is_told| CrashDump {
                has_our_names: is_told && !beside_others,
                folder: folder_of(self.output.as_deref().unwrap_or("trace.nettrace".as_ref())).to_owned(),
            });
            recorder.watch_for_crash(
                &source.target,
                self.child.clone().filter(|_| !beside_others),
                dump.as_ref(),
            );
            let bytes = units::bytes(capacity.bytes);
            match capacity.time {
                Some(time) => {
                    let time = duration::display(time);
                    begin(format_args!("Keeping        : the last {time}, {bytes} at most"));
                }
                None => begin(format_args!("Keeping        : the last {bytes}")),
            }
            let end = recorder::run(session, &mut recorder, &limits);
            let end = end.inspect_err(|_| recorder.finish_begun())?;
            let summary = recorder.finish(&end, &source.target)?;
            (end, summary)
        } else {
            let (size, retention) = self.rotation.unwrap_or_default();
            let mut recorder =
                RotatingRecorder::new(size, retention, stopping_event, self.duration, file_name);
            if lists_methods {
                recorder.list_methods(&source.target, needs_help, is_starting);
            }
            begin(format_args!("Output Files   : {} each", units::bytes(size)));
            let end = recorder::run(session, &mut recorder, &limits)?;
            let summary = recorder.finish(&end)?;
            (end, summary)
        };
        let FlightSummary { text, lost, damage, has_crashed_as_asked, failure } = summary;
        messages::note(text);
        let exit = if has_crashed_as_asked {
            damage
        } else {
            end.report("the written part was kept", "kept")?.join(damage)
        };
        if let Some(failure) = failure {
            // The failure was reported when it happened.
            return Ok(exit.join(failure.exit));
        }
        if exit == Exit::Done && self.fail_on_loss && lost > 0 {
            return Ok(Exit::EventsLost);
        }
        Ok(exit)
    }
}
