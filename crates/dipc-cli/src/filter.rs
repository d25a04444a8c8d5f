//! Which events of a recording are shown.

use clr_events::event_name;
use nettrace::Event;

use crate::args::FilterArgs;
use crate::duration;

/// The filters of a command line, ready to be asked for each event.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    providers: Vec<String>,
    events: Vec<EventMatch>,
    threads: Vec<u64>,
    from: Option<i64>,
    to: Option<i64>,
}

#[derive(Debug)]
enum EventMatch {
    Id(u32),
    Name(String),
}

impl Filter {
    pub(crate) fn new(args: &FilterArgs) -> Self {
        Self {
            providers: args.provider.clone(),
            events: args.event.iter().map(|text| EventMatch::new(text)).collect(),
            threads: args.tid.clone(),
            from: args.from.map(duration::nanoseconds),
            to: args.to.map(duration::nanoseconds),
        }
    }

    /// Whether the event is shown. Within one filter any of its values will do; all filters have to agree.
    pub(crate) fn admits(&self, event: &Event<'_>) -> bool {
        (self.providers.is_empty()
            || self.providers.iter().any(|name| name.eq_ignore_ascii_case(event.provider())))
            && (self.events.is_empty() || self.events.iter().any(|wanted| wanted.is(event)))
            && (self.threads.is_empty() || self.threads.contains(&event.thread_id().0))
            && self.from.is_none_or(|from| event.time_ns() >= from)
            && self.to.is_none_or(|to| event.time_ns() < to)
    }

    /// Whether no event at or after this one can be shown, if events come in time order.
    pub(crate) fn is_over(&self, event: &Event<'_>) -> bool {
        self.to.is_some_and(|to| event.time_ns() >= to)
    }
}

impl EventMatch {
    fn new(text: &str) -> Self {
        // The existing tools' name for an event without a name.
        let number = text.strip_prefix("EventID(").and_then(|text| text.strip_suffix(')')).unwrap_or(text);
        number.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Id)
    }

    fn is(&self, event: &Event<'_>) -> bool {
        match self {
            Self::Id(id) => *id == event.id(),
            Self::Name(name) => event_name(event).matches(name),
        }
    }
}
