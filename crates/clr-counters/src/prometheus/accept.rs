//! Content negotiation: the choice of a format by the scraper's `Accept` header.

/// A format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Prometheus's text, version 0.0.4.
    Text,
    /// OpenMetrics's text, version 1.0.0.
    OpenMetrics,
    /// Prometheus's protobuf messages, each preceded by its length. Only this format has native histograms.
    #[cfg(feature = "protobuf")]
    Protobuf,
}

/// Maximum number of media types to examine.
const MAX_TYPES: usize = 32;

impl Format {
    /// Chooses by the `Accept` header of a request: the type with the largest weight, the first one on a tie.
    /// Text if nothing fits.
    ///
    /// ```
    /// use clr_counters::prometheus::Format;
    ///
    /// let format = Format::negotiate(Some("text/plain;q=0.5, application/openmetrics-text;version=1.0.0"));
    /// assert_eq!(format, Format::OpenMetrics);
    /// assert!(format.content_type().starts_with("application/openmetrics-text"));
    /// assert_eq!(Format::negotiate(None), Format::Text);
    /// ```
    pub fn negotiate(accept: Option<&str>) -> Self {
        let mut best = (Self::Text, 0.0f64);
        for media_type in accept.unwrap_or_default().split(',').take(MAX_TYPES) {
            let mut parts = media_type.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let parameters: Vec<(String, &str)> = parts
                .filter_map(|part| part.split_once('='))
                .map(|(key, value)| (key.trim().to_ascii_lowercase(), value.trim().trim_matches('"')))
                .collect();
            let parameter =
                |name: &str| parameters.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
            let weight = parameter("q").map_or(Some(1.0), |weight| weight.parse::<f64>().ok());
            let Some(weight) = weight.filter(|weight| *weight > best.1 && *weight <= 1.0) else { continue };
            let format = match (&*name, parameter("version")) {
                ("application/openmetrics-text", None | Some("1.0.0")) => Self::OpenMetrics,
                ("text/plain", None | Some("0.0.4")) | ("text/*" | "*/*", _) => Self::Text,
                #[cfg(feature = "protobuf")]
                ("application/vnd.google.protobuf", _)
                    if parameter("proto") == Some("io.prometheus.client.MetricFamily")
                        && parameter("encoding") == Some("delimited") =>
                {
                    Self::Protobuf
                }
                _ => continue,
            };
            best = (format, weight);
        }
        best.0
    }

    /// Returns true if a quantile may have the value: OpenMetrics forbids negative values, and parsers refuse
    /// everything else with them.
    pub(super) fn can_have_quantile(self, value: f64) -> bool {
        self != Self::OpenMetrics || value.is_nan() || value >= 0.0
    }

    /// Returns true if a sum of measurements may have the value: in OpenMetrics it is like a counter.
    pub(super) fn can_have_sum(self, value: f64) -> bool {
        self != Self::OpenMetrics || value >= 0.0
    }

    /// The `Content-Type` of the format.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            #[cfg(feature = "protobuf")]
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_the_format_that_the_scraper_prefers() {
        let rows = [
            (None, Format::Text),
            (Some(""), Format::Text),
            (Some("*/*"), Format::Text),
            (Some("application/openmetrics-text"), Format::OpenMetrics),
            (Some("application/openmetrics-text; version=2.0.0"), Format::Text),
            (Some("text/plain;q=0.3, application/openmetrics-text;q=0.4"), Format::OpenMetrics),
            (Some("text/plain;q=0.5, application/openmetrics-text;q=0.4"), Format::Text),
            (Some("application/openmetrics-text;q=0"), Format::Text),
            (Some("application/openmetrics-text;q=NaN"), Format::Text),
            (Some("application/json"), Format::Text),
            // Prometheus 2.42.
            (
                Some(
                    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                ),
                Format::OpenMetrics,
            ),
            // Prometheus 3.
            (
                Some(
                    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                ),
                Format::OpenMetrics,
            ),
        ];
        for (accept, format) in rows {
            assert_eq!(Format::negotiate(accept), format, "{accept:?}");
        }
    }

    #[cfg(feature = "protobuf")]
    #[test]
    fn prefers_protobuf_if_the_client_names_its_messages() {
        let asked = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;q=0.5";
        assert_eq!(Format::negotiate(Some(asked)), Format::Protobuf);
        assert_eq!(Format::negotiate(Some("application/vnd.google.protobuf")), Format::Text);
    }
}
