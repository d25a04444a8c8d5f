//! The typed configuration of a checked tree.

use std::path::PathBuf;
use std::time::Duration;

use dipc_collect::Retention;

use crate::access::ApiKey;
use crate::filter::Filter;

use super::filter::filter;
use super::finding::{Findings, Severity};
use super::model::{
    Configuration, ConnectionMode, ContinuousProfiling, CounterGroup, DiagnosticPort, DirectoryEgress,
    EgressProvider, GlobalCounter, Metrics, SEGMENTS, Storage,
};
use super::rule::RuleBuilder;
use super::store::{AzureEgress, DataSetEgress, GoogleEgress, S3Egress, Secret, StoreEgress};
use super::tree::Node;
use super::view::View;

/// Builds the configuration. Faults between keys are added to the findings.
pub(crate) fn build(root: &Node, findings: &mut Findings) -> Configuration {
    let root = View(Some(root));
    let mut configuration = Configuration {
        diagnostic_port: diagnostic_port(root.get("DiagnosticPort")),
        storage: storage(root.get("Storage")),
        default_process: filters_of("DefaultProcess", root.get("DefaultProcess"), findings),
        global_counter: global_counter(root.get("GlobalCounter")),
        metrics: metrics(root.get("Metrics")),
        continuous_profiling: continuous_profiling(root.get("ContinuousProfiling"), findings),
        ..Configuration::default()
    };
    configuration.api_key = api_key(root.get("Authentication").get("MonitorApiKey"), findings);
    egress(root.get("Egress"), &mut configuration, findings);
    let mode = configuration.diagnostic_port.mode;
    if mode == ConnectionMode::Listen
        && configuration.diagnostic_port.endpoint.is_none()
        && configuration.storage.default_shared_path.is_none()
    {
        findings.error(
            root.get("DiagnosticPort").location(),
            "DiagnosticPort",
            "listen mode needs an address".to_owned(),
            Some("set EndpointName, or Storage:DefaultSharedPath".to_owned()),
        );
    }
    if mode == ConnectionMode::Connect {
        let endpoint = root.get("DiagnosticPort").get("EndpointName");
        if endpoint.is_set() {
            let message = "connect mode has no port".to_owned();
            let help = Some("add \"ConnectionMode\": \"Listen\"".to_owned());
            findings.add(
                Severity::Ignored,
                endpoint.location(),
                "DiagnosticPort:EndpointName",
                message,
                help,
            );
        }
    }
    let builder = RuleBuilder::new(root, &configuration.egress, configuration.global_counter.interval);
    let (mut rules, mut unusable) = (Vec::new(), Vec::new());
    for (name, rule) in root.get("CollectionRules").entries() {
        match builder.build(name, rule, findings) {
            Some(rule) => rules.push(rule),
            None => unusable.push(name.to_owned()),
        }
    }
    configuration.rules = rules;
    configuration.unusable_rules = unusable;
    configuration
}

fn storage(section: View<'_>) -> Storage {
    let path = |key: &str| section.owned(key).filter(|path| !path.is_empty()).map(PathBuf::from);
    Storage { default_shared_path: path("DefaultSharedPath"), dump_temp_folder: path("DumpTempFolder") }
}

fn diagnostic_port(port: View<'_>) -> DiagnosticPort {
    if let Some(endpoint) = port.own_text() {
        return DiagnosticPort { mode: ConnectionMode::Listen, endpoint: Some(endpoint.to_owned()) };
    }
    let mode = match port.one_of("ConnectionMode", &["Connect", "Listen"]) {
        Some("Listen") => ConnectionMode::Listen,
        _ => ConnectionMode::Connect,
    };
    DiagnosticPort { mode, endpoint: port.owned("EndpointName") }
}

fn api_key(section: View<'_>, findings: &mut Findings) -> Option<ApiKey> {
    let (subject, public_key) = (section.text("Subject")?, section.text("PublicKey")?);
    match ApiKey::parse(subject, public_key, section.text("Issuer")) {
        Ok(key) => Some(key),
        Err(error) => {
            let help = "it is what 'dotnet monitor generatekey' prints, or a JSON Web Key in base64url";
            findings.error(
                section.get("PublicKey").location(),
                "Authentication:MonitorApiKey:PublicKey",
                error.to_string(),
                Some(help.to_owned()),
            );
            None
        }
    }
}

/// The filters of a section with this name.
fn filters_of(name: &str, section: View<'_>, findings: &mut Findings) -> Vec<Filter> {
    let mut filters = Vec::new();
    for (number, item) in section.items("Filters").into_iter().enumerate() {
        let path = format!("{name}:Filters:{number}");
        filters.extend(filter(item, &path, findings));
    }
    filters
}

fn seconds(value: Option<f64>) -> Option<Duration> {
    Duration::try_from_secs_f64(value?).ok()
}

fn global_counter(section: View<'_>) -> GlobalCounter {
    let usual = GlobalCounter::default();
    let providers = section.get("Providers").entries().filter_map(|(name, provider)| {
        Some((name.to_lowercase(), seconds(provider.number("IntervalSeconds"))?))
    });
    GlobalCounter {
        interval: seconds(section.number("IntervalSeconds")).unwrap_or(usual.interval),
        max_histograms: section.integer("MaxHistograms").unwrap_or(usual.max_histograms),
        max_time_series: section.integer("MaxTimeSeries").unwrap_or(usual.max_time_series),
        providers: providers.collect(),
    }
}

fn metrics(section: View<'_>) -> Metrics {
    let usual = Metrics::default();
    let groups = |list: &str, name: &str, counters: &str| {
        section
            .items(list)
            .into_iter()
            .filter_map(|item| Some(CounterGroup { name: item.owned(name)?, counters: item.texts(counters) }))
            .collect()
    };
    let endpoints = section.text("Endpoints").unwrap_or_default();
    let endpoints = endpoints.split(';').map(str::trim).filter(|address| !address.is_empty());
    Metrics {
        enabled: section.boolean("Enabled").unwrap_or(usual.enabled),
        endpoints: endpoints.map(str::to_owned).collect(),
        include_default_providers: section
            .boolean("IncludeDefaultProviders")
            .unwrap_or(usual.include_default_providers),
        providers: groups("Providers", "ProviderName", "CounterNames"),
        meters: groups("Meters", "MeterName", "InstrumentNames"),
    }
}

fn continuous_profiling(section: View<'_>, findings: &mut Findings) -> ContinuousProfiling {
    let segment = section.duration("SegmentDuration");
    if segment.is_some_and(|segment| !SEGMENTS.contains(&segment)) {
        findings.error(
            section.get("SegmentDuration").location(),
            "ContinuousProfiling:SegmentDuration",
            "out of range".to_owned(),
            Some("choose a duration from 00:00:01 to 00:10:00".to_owned()),
        );
    }
    ContinuousProfiling {
        keep: section.duration("Keep"),
        frequency: section.integer("Frequency"),
        max_bytes: section.integer::<u64>("MaxSizeMegabytes").map(|size| size.saturating_mul(1 << 20)),
        directory: section.owned("DirectoryPath").map(PathBuf::from),
        segment,
        kernel_frames: section.boolean("KernelFrames"),
        filters: filters_of("ContinuousProfiling", section, findings),
    }
}

fn egress(section: View<'_>, configuration: &mut Configuration, findings: &mut Findings) {
    let mut add = |name: &str, provider, view: View<'_>, path: String| {
        if configuration.egress.insert(name.to_owned(), provider).is_some() {
            let message = "another provider has the same name".to_owned();
            findings.add(Severity::Error, view.location(), &path, message, None);
        }
    };
    for (name, view) in section.get("FileSystem").entries() {
        let Some(directory) = view.owned("DirectoryPath") else { continue };
        let provider = EgressProvider::FileSystem(DirectoryEgress {
            directory: directory.into(),
            intermediate: view.owned("IntermediateDirectoryPath").map(PathBuf::from),
            retention: Retention::default(),
        });
        add(name, provider, view, format!("Egress:FileSystem:{name}"));
    }
    let properties = section.get("Properties");
    let stores: [(&'static str, StoreBuilder); 4] = [
        ("AzureBlobStorage", azure),
        ("S3Storage", s3),
        ("GoogleCloudStorage", google),
        ("ParquetDataSet", data_set),
    ];
    for (kind, build) in stores {
        for (name, view) in section.get(kind).entries() {
            let provider = match build(view, properties) {
                Some(store) if cfg!(feature = "stores") => EgressProvider::Store(store),
                _ => EgressProvider::Unsupported(kind),
            };
            add(name, provider, view, format!("Egress:{kind}:{name}"));
        }
    }
    check_azure(section, findings);
    check_s3(section, findings);
}

/// Returns the store of a section; `None` if it lacks a name, which is reported elsewhere.
type StoreBuilder = fn(View<'_>, View<'_>) -> Option<StoreEgress>;

fn s3(view: View<'_>, _: View<'_>) -> Option<StoreEgress> {
    let key = view.owned("AccessKeyId").zip(view.owned("SecretAccessKey").map(Secret::new));
    Some(StoreEgress::S3(S3Egress {
        endpoint: view.owned("Endpoint"),
        bucket: view.owned("BucketName")?,
        region: view.owned("RegionName"),
        access_key: key,
        uses_kms: view.boolean("UseKmsEncryption").unwrap_or(false),
        kms_key: view.owned("KmsEncryptionKey"),
    }))
}

fn google(view: View<'_>, _: View<'_>) -> Option<StoreEgress> {
    Some(StoreEgress::Google(GoogleEgress {
        bucket: view.owned("BucketName")?,
        prefix: view.owned("Prefix"),
        endpoint: view.owned("Endpoint"),
        service_account: view.owned("ServiceAccountPath").map(PathBuf::from),
        service_account_key: view.owned("ServiceAccountKey").map(Secret::new),
    }))
}

fn data_set(view: View<'_>, _: View<'_>) -> Option<StoreEgress> {
    let labels = view.get("Labels").entries();
    let labels = labels.filter_map(|(name, label)| Some((name.to_owned(), label.own_text()?.to_owned())));
    Some(StoreEgress::DataSet(DataSetEgress {
        directory: view.owned("DirectoryPath")?.into(),
        labels: labels.collect(),
    }))
}

fn azure(view: View<'_>, properties: View<'_>) -> Option<StoreEgress> {
    // Secrets may be in Egress:Properties, under the name that another key has.
    let secret = |key: &str, name_key: &str| {
        let named = || properties.owned(view.text(name_key)?);
        view.owned(key).or_else(named).map(Secret::new)
    };
    Some(StoreEgress::Azure(AzureEgress {
        account_uri: view.owned("AccountUri")?,
        container: view.owned("ContainerName")?,
        prefix: view.owned("BlobPrefix"),
        account_key: secret("AccountKey", "AccountKeyName"),
        shared_access_signature: secret("SharedAccessSignature", "SharedAccessSignatureName"),
        managed_identity: view.owned("ManagedIdentityClientId"),
    }))
}

/// Secrets that `…Name` keys take from `Egress:Properties`.
fn check_azure(section: View<'_>, findings: &mut Findings) {
    const NAMES: [&str; 3] =
        ["AccountKeyName", "SharedAccessSignatureName", "QueueSharedAccessSignatureName"];
    for (name, view) in section.get("AzureBlobStorage").entries() {
        for key in NAMES {
            let Some(property) = view.text(key) else { continue };
            if !section.get("Properties").get(property).is_set() {
                findings.error(
                    view.get(key).location(),
                    &format!("Egress:AzureBlobStorage:{name}:{key}"),
                    format!("Egress:Properties has no {property:?}"),
                    Some(format!("add \"Properties\": {{{property:?}: \"…\"}} to Egress")),
                );
            }
        }
        if view.is_set() && view.text("QueueName").is_some() != view.text("QueueAccountUri").is_some() {
            findings.error(
                view.location(),
                &format!("Egress:AzureBlobStorage:{name}"),
                "QueueName and QueueAccountUri belong together".to_owned(),
                Some("set both, or neither".to_owned()),
            );
        }
    }
}

fn check_s3(section: View<'_>, findings: &mut Findings) {
    const MIN_DURATION: Duration = Duration::from_secs(60);
    const MAX_DURATION: Duration = Duration::from_secs(86_400);
    for (name, view) in section.get("S3Storage").entries() {
        let path = format!("Egress:S3Storage:{name}");
        if view.text("AccessKeyId").is_some() != view.text("SecretAccessKey").is_some() {
            let message = "AccessKeyId and SecretAccessKey belong together".to_owned();
            findings.error(view.location(), &path, message, Some("set both, or neither".to_owned()));
        }
        if view
            .duration("PreSignedUrlExpiry")
            .is_some_and(|expiry| expiry < MIN_DURATION || expiry > MAX_DURATION)
        {
            findings.error(
                view.get("PreSignedUrlExpiry").location(),
                &format!("{path}:PreSignedUrlExpiry"),
                "out of range".to_owned(),
                Some("choose a duration from 00:01:00 to 1.00:00:00".to_owned()),
            );
        }
    }
}
