//! Arguments that name the event at which a session ends.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::record::selection::Selection;
use crate::record::stopping_event::{PayloadField, StoppingEvent};
use crate::render::messages;

/// The event that ends the session.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoppingArgs {
    /// Stop at an event of this provider, which must be one of the recorded providers
    #[arg(id = "stopping_event_provider_name", long = "stopping-event-provider-name", value_name = "PROVIDER", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) provider: Option<String>,
    /// Stop only at an event of this name, as dipc events shows it: GC/Start
    #[arg(id = "stopping_event_event_name", long = "stopping-event-event-name", value_name = "NAME", requires = "stopping_event_provider_name", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) event: Option<String>,
    /// Stop only at an event with these field values, as dipc events shows them: Depth:2,Reason:Induced
    #[arg(
        id = "stopping_event_payload_filter",
        long = "stopping-event-payload-filter",
        value_name = "FIELD:VALUE,…",
        requires = "stopping_event_event_name",
        value_delimiter = ','
    )]
    pub(crate) payload: Vec<PayloadField>,
}

impl StoppingArgs {
    /// The event that the arguments name, if they name one. Warns if it cannot occur.
    pub(crate) fn event_among(&self, selection: &Selection) -> Option<StoppingEvent> {
        let event = self.event()?;
        if !selection.has_provider(&event.provider) {
            messages::warning(format_args!(
                "the stopping event cannot occur: provider {} is not recorded",
                event.provider
            ));
        }
        Some(event)
    }

    /// The event that the arguments name, if they name one.
    pub(crate) fn event(&self) -> Option<StoppingEvent> {
        let provider = self.provider.clone()?;
        Some(StoppingEvent { provider, name: self.event.clone(), payload: self.payload.clone() })
    }
}
