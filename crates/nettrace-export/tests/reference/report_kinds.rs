//! Reports of the kinds of events that they need, against those of all events.

use nettrace::{Event, Metadata, Reader};
use nettrace_export::report::{
    self, Allocations, Collections, Contention, Exceptions, Jit, Startup, ThreadPool,
};

use crate::bytes_of;
use crate::everything::recordings;

/// A report, made of events one by one.
struct Report<T> {
    name: &'static str,
    needs: fn(&Metadata) -> bool,
    add: fn(&mut T, &Event<'_>),
    /// Returns it as JSON.
    finish: fn(T) -> String,
}

impl<T: Default> Report<T> {
    /// Makes it of all events, and of those that it needs, and returns how many these are.
    fn check(&self, recording: &[u8], file: &str, end: impl Fn(&mut T, nettrace::RelativeTime)) -> u64 {
        let reader = || Reader::new(recording).expect("a recording").with_lookahead();
        let mut of_all = T::default();
        let all = report::read(reader(), |event| (self.add)(&mut of_all, event)).expect("bytes in memory");
        let (mut of_kinds, mut count) = (T::default(), 0);
        let kinds = report::read_kinds(reader(), self.needs, |event| {
            count += 1;
            (self.add)(&mut of_kinds, event);
        });
        let kinds = kinds.expect("bytes in memory");
        if let Some(time) = kinds.last_time() {
            end(&mut of_kinds, time);
        }
        assert_eq!((self.finish)(of_kinds), (self.finish)(of_all), "{file}: {}", self.name);
        assert_eq!(kinds.loss().total(), all.loss().total(), "{file}");
        assert_eq!(
            (kinds.damage(), kinds.events().truncated_at()),
            (all.damage(), all.truncated_at()),
            "{file}"
        );
        count
    }
}

macro_rules! report {
    ($report:ident) => {
        Report::<$report> {
            name: stringify!($report),
            needs: $report::needs,
            add: $report::add,
            finish: |report| serde_json::to_string(&report.finish()).expect("JSON"),
        }
    };
}

#[test]
fn reports_of_the_kinds_that_they_need_are_the_same() {
    let mut counts = [0; 7];
    for path in recordings() {
        let bytes = bytes_of(&path);
        let file = path.display().to_string();
        // Whole, and cut in the midst of a block.
        for recording in [&bytes[..], &bytes[..bytes.len() / 2]] {
            let of_recording = [
                report!(Allocations).check(recording, &file, |_, _| {}),
                report!(Collections).check(recording, &file, Collections::extend_to),
                report!(Contention).check(recording, &file, |_, _| {}),
                report!(Exceptions).check(recording, &file, |_, _| {}),
                report!(Jit).check(recording, &file, |_, _| {}),
                report!(Startup).check(recording, &file, |_, _| {}),
                report!(ThreadPool).check(recording, &file, |_, _| {}),
            ];
            counts.iter_mut().zip(of_recording).for_each(|(sum, count)| *sum += count);
        }
    }
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}
