//! The state that the server answers from.

use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::page::Page;
use super::settings::Settings;
use crate::access::Tokens;
use crate::black_box::BlackBoxes;
use crate::continuous_profile::ContinuousProfile;
use crate::egress::EgressQueue;
use crate::metrics::Metrics;
use crate::monitor::Monitor;
use crate::operation::Operations;
use crate::otlp::OtlpExport;
use crate::rule_runner::Rules;

/// The state that the server answers from.
pub(super) struct Service {
    pub(super) monitor: Arc<Monitor>,
    pub(super) metrics: Option<Arc<Metrics>>,
    pub(super) operations: Operations,
    pub(super) tokens: Tokens,
    pub(super) settings: Settings,
    pub(super) no_http_egress: bool,
    pub(super) version: String,
    pub(super) rules: Option<Arc<Rules>>,
    pub(super) queue: Option<EgressQueue>,
    pub(super) black_boxes: Option<Arc<BlackBoxes>>,
    pub(super) export: Option<Arc<OtlpExport>>,
    pub(super) profiles: Option<Arc<ContinuousProfile>>,
    pub(super) start: Instant,
    pub(super) runtime: Handle,
    pub(super) page: Page,
    /// Permits the making of pages of recordings, one at a time.
    pub(super) pages: Arc<Semaphore>,
}
