//! The query of a request.

use std::collections::BTreeSet;
use std::time::Duration;

use dipc_client::Uuid;

use super::RequestError;

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 10_000;

/// The parameters of a request. The first of each name counts. Names match in any case.
pub(crate) struct Query(Vec<(String, String)>);

/// The process that a request names.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ProcessSelector {
    pub(crate) pid: Option<u32>,
    pub(crate) uid: Option<Uuid>,
    pub(crate) name: Option<String>,
}

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// A parameter that is parsed; an empty one counts as missing.
    fn parsed<T>(
        &self,
        name: &str,
        what: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, RequestError> {
        let Some(text) = self.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        match parse(text) {
            Some(value) => Ok(Some(value)),
            None => Err(RequestError::invalid(name, format!("'{text}' is not {what}"))),
        }
    }

    pub(crate) fn process(&self) -> Result<ProcessSelector, RequestError> {
        let pid = self.parsed("pid", "a process id", |text| text.parse::<i32>().ok())?;
        Ok(ProcessSelector {
            // A negative number is valid and matches no process.
            pid: pid.map(|pid| u32::try_from(pid).unwrap_or(u32::MAX)),
            uid: self.parsed("uid", "a UUID", |text| Uuid::try_parse(text).ok())?,
            name: self.get("name").filter(|name| !name.is_empty()).map(ToOwned::to_owned),
        })
    }

    /// `durationSeconds`: 30 by default; -1, which is `None`, is without a limit.
    pub(crate) fn duration(&self) -> Result<Option<Duration>, RequestError> {
        let seconds = self.parsed("durationSeconds", "a number from -1 to 2147483647", |text| {
            text.parse::<i32>().ok().filter(|seconds| *seconds >= -1)
        })?;
        Ok(u64::try_from(seconds.unwrap_or(30)).ok().map(Duration::from_secs))
    }

    /// Returns true if `durationSeconds` is given.
    pub(crate) fn has_duration(&self) -> bool {
        self.get("durationSeconds").is_some()
    }

    /// A point in time, in milliseconds since 1970: a calendar time, or the seconds before `now_ms`.
    pub(crate) fn time(&self, name: &str, now_ms: u64) -> Result<Option<u64>, RequestError> {
        let what = "a time as 2026-11-21T09:02:44Z, or a number of seconds ago";
        self.parsed(name, what, |text| {
            if let Ok(time) = text.parse::<jiff::Timestamp>() {
                return u64::try_from(time.as_millisecond()).ok();
            }
            let ago = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
            Some(now_ms.saturating_sub(u64::try_from(ago.as_millis()).ok()?))
        })
    }

    /// A time with a unit, as `500ms`.
    pub(crate) fn time_span(&self, name: &str) -> Result<Option<Duration>, RequestError> {
        self.parsed(name, "a time as 500ms or 2s", |text| clr_conditions::parse_duration(text).ok())
    }

    /// `tags`, separated by commas.
    pub(crate) fn tags(&self) -> BTreeSet<String> {
        let tags = self.get("tags").unwrap_or_default().split(',').map(str::trim);
        tags.filter(|tag| !tag.is_empty()).map(ToOwned::to_owned).collect()
    }

    /// A flag, `false` by default.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, RequestError> {
        let parse = |text: &str| text.to_ascii_lowercase().parse().ok();
        Ok(self.parsed(name, "true or false", parse)?.unwrap_or_default())
    }

    /// `number`: the rows of a table, 20 by default.
    pub(crate) fn number(&self) -> Result<usize, RequestError> {
        let parse = |text: &str| text.parse().ok().filter(|number| (1..=MAX_ROWS).contains(number));
        Ok(self.parsed("number", "a number from 1 to 10000", parse)?.unwrap_or(20))
    }

    /// A value with a name from a list.
    pub(crate) fn choice<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, RequestError> {
        self.parsed(name, "one of its values", parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_the_limits_of_the_contract() {
        let duration = |query| Query::parse(Some(query)).duration();
        assert_eq!(duration("").unwrap(), Some(Duration::from_secs(30)));
        assert_eq!(duration("durationseconds=-1").unwrap(), None);
        assert_eq!(duration("durationSeconds=2147483647").unwrap(), Some(Duration::from_secs(2_147_483_647)));
        for query in ["durationSeconds=-2", "durationSeconds=2147483648", "durationSeconds=1.5"] {
            assert!(duration(query).is_err(), "{query}");
        }
        let process = Query::parse(Some("pid=7&name=a%20b&pid=8")).process().unwrap();
        assert_eq!(process, ProcessSelector { pid: Some(7), uid: None, name: Some("a b".into()) });
        assert!(Query::parse(Some("pid=x")).process().is_err());
        assert!(Query::parse(Some("uid=x")).process().is_err());
        assert_eq!(Query::parse(Some("tags=b,,a,%20b")).tags().len(), 2);
        let number = |query| Query::parse(Some(query)).number();
        assert_eq!((number("").unwrap(), number("number=10000").unwrap()), (20, 10_000));
        assert!(number("number=0").is_err() && number("number=10001").is_err());
        assert!(Query::parse(Some("stop=maybe")).flag("stop").is_err());
        let span = |query| Query::parse(Some(query)).time_span("slower_than");
        assert_eq!(
            (span("").unwrap(), span("slower_than=500ms").unwrap()),
            (None, Some(Duration::from_millis(500)))
        );
        assert!(span("slower_than=500").is_err());
    }
}
