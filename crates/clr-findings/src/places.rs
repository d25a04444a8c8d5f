//! Places in the user's code, by the threads that are there, and the first of them in a sentence.

use std::collections::BTreeMap;
use std::fmt::Display;

use nettrace_export::units::counted;

use crate::memory_facts::ThreadFacts;

/// Maximum number of places in a sentence.
const MAX_IN_WORDS: usize = 3;

/// Groups threads by their method of the user's code and the framework's method that it called. Threads
/// without a method of the user's code are left out.
pub(crate) fn threads_by_method<'f>(
    threads: impl Iterator<Item = &'f ThreadFacts>,
) -> impl Iterator<Item = (u64, String, Option<String>)> {
    let mut methods: BTreeMap<(&str, Option<&str>), u64> = BTreeMap::new();
    for thread in threads {
        if let Some(method) = &thread.method {
            let threads = methods.entry((method, thread.called.as_deref())).or_default();
            *threads = threads.saturating_add(1);
        }
    }
    let group = |((method, called), threads): ((&str, Option<&str>), u64)| {
        (threads, method.to_owned(), called.map(str::to_owned))
    };
    methods.into_iter().map(group)
}

/// Joins the first places to a part of a sentence, with the number of others, which are `one` or `many`;
/// `None` without places.
pub(crate) fn first_in_words(places: &[impl Display], [one, many]: [&str; 2]) -> Option<String> {
    let shown = places.iter().take(MAX_IN_WORDS).map(ToString::to_string);
    let left = places.len().saturating_sub(MAX_IN_WORDS);
    let more = (left > 0).then(|| counted(left as u64, one, many));
    (!places.is_empty()).then(|| shown.chain(more).collect::<Vec<_>>().join(", "))
}
