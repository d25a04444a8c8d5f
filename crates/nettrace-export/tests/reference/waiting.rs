//! Time of threads that waited.
//!
//! The figures were computed by a program that shares nothing with the rule of clr-events but the table of
//! `facts/waits.tsv`: from the names of stacks as `dipc events --stacks --symbols` prints them. Of
//! `net10-all` 1,170,345 ns are of a worker of the pool without a frame of its wait.

use clr_events::ThreadState;
use nettrace_export::report::top;
use nettrace_export::{Metric, Options, Pattern, Profile};

use crate::{bytes_of, profile_of, testdata};

fn profile(name: &str, options: Options) -> Profile {
    let recording = bytes_of(&testdata().join(format!("traces/{name}.nettrace.xz")));
    profile_of(&recording, options.with_tracks(false))
}

/// Without idle time, and with pauses where those figures have them: with the methods that they interrupted.
fn without_idle() -> Options {
    Options::new(Metric::Wall).with_idle(false).with_gc_pauses(false)
}

#[test]
fn waits_for_work_are_left_out_and_other_waits_are_kept() {
    for (name, idle, blocked) in
        [("net10-all", 6_947_721_728, 2_289_975), ("net10-sample", 3_612_894_969, 11_112_449_475)]
    {
        let all = profile(name, Options::new(Metric::Wall));
        let shown = profile(name, without_idle());
        assert_eq!((all.idle(), all.blocked()), (0, 0), "{name}");
        assert_eq!((shown.idle(), shown.blocked()), (idle, blocked), "{name}");
        assert_eq!(shown.total() + idle, all.total(), "{name}");

        // A frame at the leaf says so.
        let weight = |frame: &str| {
            top(&shown).into_iter().find(|row| row.frame == frame).map(|row| (row.exclusive, row.blocked))
        };
        assert_eq!(weight("BLOCKED_TIME"), Some((blocked, blocked)), "{name}");
        let without_kinds = profile(name, without_idle().with_kinds(false));
        assert_eq!((without_kinds.idle(), without_kinds.total()), (idle, shown.total()), "{name}");
    }
}

#[test]
fn stack_filters_do_not_change_the_kind_of_a_wait() {
    let name = "net10-sample";
    let mut options = without_idle();
    options.filter = options.filter.with_hidden(vec![Pattern::new("System.Private.CoreLib!")]);
    assert_eq!(profile(name, options).idle(), profile(name, without_idle()).idle());
}

#[test]
fn owners_of_waits_can_be_added() {
    let name = "net10-sample";
    let before = profile(name, without_idle());
    let after = profile(name, without_idle().with_waits_for_work(vec![Pattern::new("workload!")]));
    assert_eq!(after.blocked(), 0, "all that blocks is the program's own");
    // A wait that was compiled into the method lacks a frame: such samples are outside managed code with the
    // program's own leaf.
    let compiled_in = before.stack_totals.iter().filter(|total| {
        let mut frames = total.stack.into_iter().flat_map(|stack| before.stacks.frames(stack));
        let mut name = || frames.next().map_or("", |frame| before.frames.name(frame));
        total.state == ThreadState::Working
            && name() == "UNMANAGED_CODE_TIME"
            && name().starts_with("workload!")
    });
    let waits = before.blocked() + compiled_in.map(|total| total.weight).sum::<u64>();
    assert_eq!(after.idle(), before.idle() + waits);
    assert_eq!(after.total(), before.total() - waits);
}
