//! Names of metrics and labels in Prometheus.

/// The unit of a metric: the words at the end of its name, and the factor of its values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unit {
    /// Empty for no unit.
    pub(super) words: String,
    pub(super) factor: f64,
}

impl Unit {
    fn new(words: &str, factor: f64) -> Self {
        Self { words: words.to_owned(), factor }
    }

    /// The unit of an instrument, by OpenTelemetry's rules for Prometheus: values stay as they are.
    pub(super) fn of_instrument(unit: &str, is_gauge: bool) -> Self {
        let without_braces = match (unit.find('{'), unit.rfind('}')) {
            (Some(start), Some(end)) if start < end => {
                let (before, behind) =
                    (unit.get(..start), end.checked_add(1).and_then(|end| unit.get(end..)));
                format!("{}{}", before.unwrap_or_default(), behind.unwrap_or_default())
            }
            _ => unit.to_owned(),
        };
        let words = match without_braces.trim().split_once('/') {
            Some((amount, per)) if !per.is_empty() => {
                let amount = words_of(amount);
                let per = format!("per_{}", word_per(per));
                if amount.is_empty() { per } else { format!("{amount}_{per}") }
            }
            _ if without_braces.trim() == "1" => (if is_gauge { "ratio" } else { "" }).to_owned(),
            _ => words_of(without_braces.trim()),
        };
        Self { words: metric_name(&words), factor: 1.0 }
    }

    /// The unit of an EventCounter, in Prometheus's base units: megabytes become bytes, milliseconds seconds,
    /// percents ratios.
    pub(super) fn of_event_counter(unit: &str) -> Self {
        match unit.trim() {
            "B" => Self::new("bytes", 1.0),
            "KB" => Self::new("bytes", 1e3),
            "MB" => Self::new("bytes", 1e6),
            "GB" => Self::new("bytes", 1e9),
            "%" => Self::new("ratio", 0.01),
            "s" | "sec" => Self::new("seconds", 1.0),
            "ms" | "msec" => Self::new("seconds", 1e-3),
            "us" | "µs" | "μs" => Self::new("seconds", 1e-6),
            "ns" => Self::new("seconds", 1e-9),
            "" | "count" | "Count" => Self::new("", 1.0),
            other => Self::new(&metric_name(other), 1.0),
        }
    }

    /// The unit as in dotnet-monitor: percents keep their values.
    pub(super) fn of_dotnet_monitor(unit: &str) -> Self {
        match unit.trim() {
            "B" => Self::new("bytes", 1.0),
            "MB" => Self::new("bytes", 1e6),
            "%" => Self::new("ratio", 1.0),
            unit if unit.is_empty() || unit.eq_ignore_ascii_case("count") => Self::new("", 1.0),
            other => Self::new(&replace_invalid(other), 1.0),
        }
    }
}

/// Returns the words of a UCUM unit.
fn words_of(unit: &str) -> String {
    let words = match unit {
        "d" => "days",
        "h" => "hours",
        "min" => "minutes",
        "s" => "seconds",
        "ms" => "milliseconds",
        "us" => "microseconds",
        "ns" => "nanoseconds",
        "By" => "bytes",
        "KiBy" => "kibibytes",
        "MiBy" => "mebibytes",
        "GiBy" => "gibibytes",
        "TiBy" => "tebibytes",
        "KBy" => "kilobytes",
        "MBy" => "megabytes",
        "GBy" => "gigabytes",
        "TBy" => "terabytes",
        "m" => "meters",
        "V" => "volts",
        "A" => "amperes",
        "J" => "joules",
        "W" => "watts",
        "g" => "grams",
        "Cel" => "celsius",
        "Hz" => "hertz",
        "%" => "percent",
        other => other,
    };
    words.to_owned()
}

/// Returns the word of a unit after a solidus.
fn word_per(unit: &str) -> String {
    let word = match unit {
        "s" => "second",
        "m" | "min" => "minute",
        "h" => "hour",
        "d" => "day",
        "w" => "week",
        "mo" => "month",
        "y" => "year",
        other => return words_of(other),
    };
    word.to_owned()
}

/// Converts a string to the name of a metric: invalid characters become `_`, never two in a row or at the
/// end.
pub(super) fn metric_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for character in text.chars() {
        let is_valid = character.is_ascii_alphanumeric() || character == ':';
        if is_valid {
            if name.is_empty() && character.is_ascii_digit() {
                name.push('_');
            }
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    if name.ends_with('_') {
        name.pop();
    }
    name
}

/// Replaces each invalid character with `_`, as in dotnet-monitor.
pub(super) fn replace_invalid(text: &str) -> String {
    text.chars().map(|character| if is_valid_in_monitor(character) { character } else { '_' }).collect()
}

/// Returns a provider's name as in dotnet-monitor: in lower case, without invalid characters.
pub(super) fn dotnet_monitor_provider(text: &str) -> String {
    text.chars().filter(|character| is_valid_in_monitor(*character)).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_valid_in_monitor(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == ':'
}

/// Returns a name with a suffix, unless it already has it.
pub(super) fn with_suffix(mut name: String, words: &str) -> String {
    let has_it =
        words.is_empty() || name == words || name.strip_suffix(words).is_some_and(|rest| rest.ends_with('_'));
    if !has_it {
        if !name.is_empty() {
            name.push('_');
        }
        name.push_str(words);
    }
    name
}

/// Converts a string to the name of a label. Names that begin with two underscores are reserved for
/// Prometheus.
pub(super) fn label_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_digit() && name.is_empty() {
            name.push('_');
        }
        name.push(if character.is_ascii_alphanumeric() { character } else { '_' });
    }
    let own = name.trim_start_matches('_');
    match own.chars().next() {
        None => "_".to_owned(),
        Some(_) if own.len() == name.len() => name,
        Some(_) => format!("_{own}"),
    }
}

/// Escapes control characters except line feeds, as `\u{1b}`.
pub(super) fn plain(text: &str) -> String {
    if !text.chars().any(|character| character.is_control() && character != '\n') {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && character != '\n' {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_have_only_allowed_characters() {
        let rows = [
            ("http.server.request.duration", "http_server_request_duration"),
            ("time-in-gc", "time_in_gc"),
            ("% Time in GC", "Time_in_GC"),
            ("9lives", "_9lives"),
            ("a..b__c--", "a_b_c"),
            ("\u{1b}[31m", "_31m"),
            ("température", "temp_rature"),
            ("…", ""),
        ];
        for (text, name) in rows {
            assert_eq!(metric_name(text), name, "{text}");
        }
    }

    #[test]
    fn names_of_labels_are_never_prometheuss_own() {
        let rows = [
            ("error.type", "error_type"),
            ("__name__", "_name__"),
            ("0", "_0"),
            ("", "_"),
            ("é", "_"),
            ("le", "le"),
        ];
        for (text, name) in rows {
            assert_eq!(label_name(text), name, "{text}");
        }
    }

    #[test]
    fn units_of_instruments_are_opentelemetrys_words() {
        let rows = [
            ("s", "seconds"),
            ("By", "bytes"),
            ("{request}", ""),
            ("{packet}/s", "per_second"),
            ("By/s", "bytes_per_second"),
            ("1", "ratio"),
            ("%", "percent"),
            ("kg", "kg"),
            ("}{", ""),
            ("/", ""),
        ];
        for (unit, words) in rows {
            assert_eq!(Unit::of_instrument(unit, true).words, words, "{unit}");
        }
        assert_eq!(Unit::of_instrument("1", false).words, "");
    }

    #[test]
    fn units_of_event_counters_become_base_units() {
        let rows = [
            ("MB", "bytes", 1e6),
            ("%", "ratio", 0.01),
            ("ms", "seconds", 1e-3),
            ("req", "req", 1.0),
            ("Count", "", 1.0),
        ];
        for (unit, words, factor) in rows {
            assert_eq!(Unit::of_event_counter(unit), Unit { words: words.to_owned(), factor }, "{unit}");
        }
    }

    #[test]
    fn a_suffix_is_not_said_twice() {
        assert_eq!(with_suffix("process_time".into(), "seconds"), "process_time_seconds");
        assert_eq!(with_suffix("process_seconds".into(), "seconds"), "process_seconds");
        assert_eq!(with_suffix("milliseconds".into(), "seconds"), "milliseconds_seconds");
        assert_eq!(with_suffix("seconds".into(), "seconds"), "seconds");
        assert_eq!(with_suffix(String::new(), "seconds"), "seconds");
    }
}
