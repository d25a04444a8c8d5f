//! The keys of dotnet-monitor's configuration: their shapes as in its schema, and their effect in this
//! program.
//!
//! Made by `cargo xtask schemas` from the files in `schema`: change these, not this file.

use crate::configuration::shape::{Object, Property, Shape, Support, Variant};

pub(crate) static ROOT: Object = Object {
    properties: &[
        Property { name: "Logging", shape: Shape::Object(&LOGGING_OPTIONS), is_required: false, support: Support::Ignored("dipc logs to standard error: -q and -v choose how much") },
        Property { name: "Authentication", shape: Shape::Object(&AUTHENTICATION_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "CollectionRules", shape: Shape::Map(&Shape::Object(&COLLECTION_RULE_OPTIONS)), is_required: false, support: Support::Used },
        Property { name: "GlobalCounter", shape: Shape::Object(&GLOBAL_COUNTER_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "InProcessFeatures", shape: Shape::Object(&IN_PROCESS_FEATURES_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "CorsConfiguration", shape: Shape::Object(&CORS_CONFIGURATION_OPTIONS), is_required: false, support: Support::Unsupported("pages of other origins cannot call this service") },
        Property { name: "DiagnosticPort", shape: Shape::TextOr(&Shape::Object(&DIAGNOSTIC_PORT_OPTIONS)), is_required: false, support: Support::Used },
        Property { name: "Egress", shape: Shape::Object(&EGRESS_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "Metrics", shape: Shape::Object(&METRICS_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "Storage", shape: Shape::Object(&STORAGE_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "DefaultProcess", shape: Shape::Object(&PROCESS_FILTER_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "CollectionRuleDefaults", shape: Shape::Object(&COLLECTION_RULE_DEFAULTS_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "Templates", shape: Shape::Object(&TEMPLATE_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "DotnetMonitorDebug", shape: Shape::Object(&DOTNET_MONITOR_DEBUG_OPTIONS), is_required: false, support: Support::Ignored("it is for developers of dotnet-monitor") },
        Property { name: "ContinuousProfiling", shape: Shape::Object(&CONTINUOUS_PROFILING_OPTIONS), is_required: false, support: Support::Used },
    ],
};

static ASP_NET_REQUEST_COUNT_OPTIONS: Object = Object {
    properties: &[
        Property { name: "RequestCount", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "SlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "IncludePaths", shape: Shape::List(&Shape::Text), is_required: false, support: Support::Used },
        Property { name: "ExcludePaths", shape: Shape::List(&Shape::Text), is_required: false, support: Support::Used },
    ],
};

static ASP_NET_REQUEST_DURATION_OPTIONS: Object = Object {
    properties: &[
        Property { name: "RequestCount", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "RequestDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "SlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "IncludePaths", shape: Shape::List(&Shape::Text), is_required: false, support: Support::Used },
        Property { name: "ExcludePaths", shape: Shape::List(&Shape::Text), is_required: false, support: Support::Used },
    ],
};

static ASP_NET_RESPONSE_STATUS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "StatusCodes", shape: Shape::List(&Shape::Text), is_required: true, support: Support::Used },
        Property { name: "ResponseCount", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "RequestCount", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "SlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "IncludePaths", shape: Shape::List(&Shape::Text), is_required: false, support: Support::Used },
        Property { name: "ExcludePaths", shape: Shape::List(&Shape::Text), is_required: false, support: Support::Used },
    ],
};

static AUTHENTICATION_OPTIONS: Object = Object {
    properties: &[
        Property { name: "MonitorApiKey", shape: Shape::Object(&MONITOR_API_KEY_OPTIONS), is_required: false, support: if cfg!(feature = "jwt") { Support::Used } else { Support::Unsupported("dipc-fleet accepts JSON Web Tokens, this program does not: it needs --token-file, --temp-api-key or --no-auth in its place") } },
        Property { name: "AzureAd", shape: Shape::Object(&AZURE_AD_OPTIONS), is_required: false, support: Support::Unsupported("Entra ID is not supported: --token-file, --temp-api-key or --no-auth is needed in its place") },
    ],
};

static AZURE_AD_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Instance", shape: Shape::Uri, is_required: false, support: Support::Used },
        Property { name: "TenantId", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "ClientId", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "AppIdUri", shape: Shape::Uri, is_required: false, support: Support::Used },
        Property { name: "RequiredRole", shape: Shape::Text, is_required: true, support: Support::Used },
    ],
};

static AZURE_BLOB_EGRESS_PROVIDER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "AccountUri", shape: Shape::Uri, is_required: true, support: Support::Used },
        Property { name: "AccountKey", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "AccountKeyName", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "SharedAccessSignature", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "SharedAccessSignatureName", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "ManagedIdentityClientId", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "UseWorkloadIdentityFromEnvironment", shape: Shape::Boolean, is_required: false, support: Support::Used },
        Property { name: "ContainerName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "BlobPrefix", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "CopyBufferSize", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Ignored("artifacts are sent in parts of a fixed size") },
        Property { name: "QueueName", shape: Shape::Text, is_required: false, support: Support::Ignored("no message is put into a queue when an artifact has arrived") },
        Property { name: "QueueAccountUri", shape: Shape::Uri, is_required: false, support: Support::Ignored("no message is put into a queue when an artifact has arrived") },
        Property { name: "QueueSharedAccessSignature", shape: Shape::Text, is_required: false, support: Support::Ignored("no message is put into a queue when an artifact has arrived") },
        Property { name: "QueueSharedAccessSignatureName", shape: Shape::Text, is_required: false, support: Support::Ignored("no message is put into a queue when an artifact has arrived") },
        Property { name: "Metadata", shape: Shape::Map(&Shape::Text), is_required: false, support: Support::Ignored("objects have no metadata") },
    ],
};

static CALL_STACKS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Enabled", shape: Shape::Boolean, is_required: false, support: Support::Ignored("/stacks answers from a session") },
    ],
};

const CALL_STACK_FORMAT: &[&str] = &["Json", "PlainText", "Speedscope"];

pub(crate) const COLLECTION_RULE_ACTIONS: &[Variant] = &[
    Variant { name: "CollectDump", settings: Some(&COLLECT_DUMP_OPTIONS), is_required: false },
    Variant { name: "CollectExceptions", settings: Some(&COLLECT_EXCEPTIONS_OPTIONS), is_required: false },
    Variant { name: "CollectGCDump", settings: Some(&COLLECT_GC_DUMP_OPTIONS), is_required: false },
    Variant { name: "CollectLiveMetrics", settings: Some(&COLLECT_LIVE_METRICS_OPTIONS), is_required: false },
    Variant { name: "CollectLogs", settings: Some(&COLLECT_LOGS_OPTIONS), is_required: false },
    Variant { name: "CollectStacks", settings: Some(&COLLECT_STACKS_OPTIONS), is_required: false },
    Variant { name: "CollectTrace", settings: Some(&COLLECT_TRACE_OPTIONS), is_required: false },
    Variant { name: "Execute", settings: Some(&EXECUTE_OPTIONS), is_required: true },
    Variant { name: "LoadProfiler", settings: Some(&LOAD_PROFILER_OPTIONS), is_required: true },
    Variant { name: "SetEnvironmentVariable", settings: Some(&SET_ENVIRONMENT_VARIABLE_OPTIONS), is_required: true },
    Variant { name: "GetEnvironmentVariable", settings: Some(&GET_ENVIRONMENT_VARIABLE_OPTIONS), is_required: true },
    Variant { name: "CollectSnapshot", settings: Some(&COLLECT_SNAPSHOT_OPTIONS), is_required: false },
];

static COLLECTION_RULE_ACTION_DEFAULTS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Egress", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static COLLECTION_RULE_ACTION_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Name", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "Type", shape: Shape::Enum(COLLECTION_RULE_ACTION_TYPE), is_required: true, support: Support::Used },
        Property { name: "Settings", shape: Shape::Settings, is_required: false, support: Support::Used },
        Property { name: "WaitForCompletion", shape: Shape::Boolean, is_required: false, support: Support::Used },
    ],
};

const COLLECTION_RULE_ACTION_TYPE: &[&str] = &["CollectDump", "CollectExceptions", "CollectGCDump", "CollectLiveMetrics", "CollectLogs", "CollectStacks", "CollectTrace", "Execute", "LoadProfiler", "SetEnvironmentVariable", "GetEnvironmentVariable", "CollectSnapshot"];

static COLLECTION_RULE_DEFAULTS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Triggers", shape: Shape::Object(&COLLECTION_RULE_TRIGGER_DEFAULTS_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "Actions", shape: Shape::Object(&COLLECTION_RULE_ACTION_DEFAULTS_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "Limits", shape: Shape::Object(&COLLECTION_RULE_LIMITS_DEFAULTS_OPTIONS), is_required: false, support: Support::Used },
    ],
};

static COLLECTION_RULE_LIMITS_DEFAULTS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "ActionCount", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "ActionCountSlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "RuleDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
    ],
};

static COLLECTION_RULE_LIMITS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "ActionCount", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "ActionCountSlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "RuleDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
    ],
};

static COLLECTION_RULE_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Filters", shape: Shape::List(&Shape::TextOr(&Shape::Object(&PROCESS_FILTER_DESCRIPTOR))), is_required: false, support: Support::Used },
        Property { name: "Trigger", shape: Shape::TextOr(&Shape::Tagged(&COLLECTION_RULE_TRIGGER_OPTIONS, COLLECTION_RULE_TRIGGERS)), is_required: true, support: Support::Used },
        Property { name: "Actions", shape: Shape::List(&Shape::TextOr(&Shape::Tagged(&COLLECTION_RULE_ACTION_OPTIONS, COLLECTION_RULE_ACTIONS))), is_required: false, support: Support::Used },
        Property { name: "Limits", shape: Shape::TextOr(&Shape::Object(&COLLECTION_RULE_LIMITS_OPTIONS)), is_required: false, support: Support::Used },
    ],
};

pub(crate) const COLLECTION_RULE_TRIGGERS: &[Variant] = &[
    Variant { name: "AspNetRequestCount", settings: Some(&ASP_NET_REQUEST_COUNT_OPTIONS), is_required: false },
    Variant { name: "AspNetRequestDuration", settings: Some(&ASP_NET_REQUEST_DURATION_OPTIONS), is_required: false },
    Variant { name: "AspNetResponseStatus", settings: Some(&ASP_NET_RESPONSE_STATUS_OPTIONS), is_required: true },
    Variant { name: "EventCounter", settings: Some(&EVENT_COUNTER_OPTIONS), is_required: true },
    Variant { name: "CPUUsage", settings: Some(&CPU_USAGE_OPTIONS), is_required: false },
    Variant { name: "GCHeapSize", settings: Some(&GC_HEAP_SIZE_OPTIONS), is_required: false },
    Variant { name: "ThreadpoolQueueLength", settings: Some(&THREADPOOL_QUEUE_LENGTH_OPTIONS), is_required: false },
    Variant { name: "EventMeter", settings: Some(&EVENT_METER_OPTIONS), is_required: true },
    Variant { name: "Startup", settings: None, is_required: false },
    Variant { name: "Condition", settings: Some(&CONDITION_OPTIONS), is_required: true },
];

static COLLECTION_RULE_TRIGGER_DEFAULTS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "RequestCount", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "ResponseCount", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "SlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
    ],
};

static COLLECTION_RULE_TRIGGER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Type", shape: Shape::Enum(COLLECTION_RULE_TRIGGER_TYPE), is_required: true, support: Support::Used },
        Property { name: "Settings", shape: Shape::Settings, is_required: false, support: Support::Used },
    ],
};

const COLLECTION_RULE_TRIGGER_TYPE: &[&str] = &["AspNetRequestCount", "AspNetRequestDuration", "AspNetResponseStatus", "EventCounter", "CPUUsage", "GCHeapSize", "ThreadpoolQueueLength", "EventMeter", "Startup", "Condition"];

static COLLECT_DUMP_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Type", shape: Shape::Enum(DUMP_TYPE), is_required: false, support: Support::Used },
        Property { name: "Egress", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "ArtifactName", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static COLLECT_EXCEPTIONS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Egress", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "Format", shape: Shape::Enum(EXCEPTION_FORMAT), is_required: false, support: Support::Used },
        Property { name: "Filters", shape: Shape::Object(&EXCEPTIONS_CONFIGURATION), is_required: false, support: Support::Used },
        Property { name: "Duration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "ArtifactName", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static COLLECT_GC_DUMP_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Egress", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "ArtifactName", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static COLLECT_LIVE_METRICS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "IncludeDefaultProviders", shape: Shape::Boolean, is_required: false, support: Support::Used },
        Property { name: "Providers", shape: Shape::List(&Shape::Object(&EVENT_METRICS_PROVIDER)), is_required: false, support: Support::Used },
        Property { name: "Meters", shape: Shape::List(&Shape::Object(&EVENT_METRICS_METER)), is_required: false, support: Support::Used },
        Property { name: "Duration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "Egress", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "ArtifactName", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static COLLECT_LOGS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "DefaultLevel", shape: Shape::Enum(LOG_LEVEL), is_required: false, support: Support::Used },
        Property { name: "FilterSpecs", shape: Shape::Map(&Shape::Enum(LOG_LEVEL)), is_required: false, support: Support::Used },
        Property { name: "UseAppFilters", shape: Shape::Boolean, is_required: false, support: Support::Used },
        Property { name: "Duration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "Egress", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "Format", shape: Shape::Enum(LOG_FORMAT), is_required: false, support: Support::Used },
        Property { name: "ArtifactName", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static COLLECT_SNAPSHOT_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Egress", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "ArtifactName", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static COLLECT_STACKS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Egress", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "Format", shape: Shape::Enum(CALL_STACK_FORMAT), is_required: false, support: Support::Used },
        Property { name: "ArtifactName", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static COLLECT_TRACE_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Profile", shape: Shape::Flags(TRACE_PROFILE), is_required: false, support: Support::Used },
        Property { name: "Providers", shape: Shape::List(&Shape::Object(&EVENT_PIPE_PROVIDER)), is_required: false, support: Support::Used },
        Property { name: "RequestRundown", shape: Shape::Boolean, is_required: false, support: Support::Used },
        Property { name: "BufferSizeMegabytes", shape: Shape::Integer(1, 1_024), is_required: false, support: Support::Used },
        Property { name: "Duration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "Egress", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "StoppingEvent", shape: Shape::Object(&TRACE_EVENT_FILTER), is_required: false, support: Support::Used },
        Property { name: "ArtifactName", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static CONDITION_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Condition", shape: Shape::Text, is_required: true, support: Support::Used },
    ],
};

const CONSOLE_LOGGER_FORMAT: &[&str] = &["Json", "Simple", "Systemd"];

static CONSOLE_LOGGER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "FormatterName", shape: Shape::Enum(CONSOLE_LOGGER_FORMAT), is_required: false, support: Support::Used },
        Property { name: "LogToStandardErrorThreshold", shape: Shape::Enum(LOG_LEVEL), is_required: false, support: Support::Used },
        Property { name: "FormatterOptions", shape: Shape::Any, is_required: false, support: Support::Used },
        Property { name: "LogLevel", shape: Shape::Map(&Shape::Enum(LOG_LEVEL)), is_required: false, support: Support::Used },
    ],
};

static CONTINUOUS_PROFILING_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Keep", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "Frequency", shape: Shape::Integer(1, 997), is_required: false, support: Support::Used },
        Property { name: "MaxSizeMegabytes", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "DirectoryPath", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "SegmentDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "KernelFrames", shape: Shape::Boolean, is_required: false, support: Support::Used },
        Property { name: "Filters", shape: Shape::List(&Shape::Object(&PROCESS_FILTER_DESCRIPTOR)), is_required: false, support: Support::Used },
    ],
};

static CORS_CONFIGURATION_OPTIONS: Object = Object {
    properties: &[
        Property { name: "AllowedOrigins", shape: Shape::Text, is_required: true, support: Support::Used },
    ],
};

static CPU_USAGE_OPTIONS: Object = Object {
    properties: &[
        Property { name: "GreaterThan", shape: Shape::Number(0.0, 100.0), is_required: false, support: Support::Used },
        Property { name: "LessThan", shape: Shape::Number(0.0, 100.0), is_required: false, support: Support::Used },
        Property { name: "SlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
    ],
};

const DIAGNOSTIC_PORT_CONNECTION_MODE: &[&str] = &["Connect", "Listen"];

static DIAGNOSTIC_PORT_OPTIONS: Object = Object {
    properties: &[
        Property { name: "ConnectionMode", shape: Shape::Enum(DIAGNOSTIC_PORT_CONNECTION_MODE), is_required: false, support: Support::Used },
        Property { name: "EndpointName", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "MaxConnections", shape: Shape::Integer(-2_147_483_648, 2_147_483_647), is_required: false, support: Support::Ignored("the number of processes is bounded by the monitor") },
        Property { name: "DeleteEndpointOnStartup", shape: Shape::Boolean, is_required: false, support: Support::Ignored("a socket that nobody listens at is replaced in any case") },
    ],
};

static DOTNET_MONITOR_DEBUG_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Exceptions", shape: Shape::Object(&EXCEPTIONS_DEBUG_OPTIONS), is_required: false, support: Support::Used },
    ],
};

const DUMP_TYPE: &[&str] = &["Full", "Mini", "WithHeap", "Triage"];

static EGRESS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "FileSystem", shape: Shape::Map(&Shape::Object(&FILE_SYSTEM_EGRESS_PROVIDER_OPTIONS)), is_required: false, support: Support::Used },
        Property { name: "Properties", shape: Shape::Map(&Shape::Text), is_required: false, support: if cfg!(feature = "stores") { Support::Used } else { Support::Ignored("only providers that are not supported have secrets") } },
        Property { name: "AzureBlobStorage", shape: Shape::Map(&Shape::Object(&AZURE_BLOB_EGRESS_PROVIDER_OPTIONS)), is_required: false, support: if cfg!(feature = "stores") { Support::Used } else { Support::Unsupported("this program writes artifacts into directories only: dipc-fleet monitor writes to object stores") } },
        Property { name: "S3Storage", shape: Shape::Map(&Shape::Object(&S3_STORAGE_EGRESS_PROVIDER_OPTIONS)), is_required: false, support: if cfg!(feature = "stores") { Support::Used } else { Support::Unsupported("this program writes artifacts into directories only: dipc-fleet monitor writes to object stores") } },
        Property { name: "GoogleCloudStorage", shape: Shape::Map(&Shape::Object(&GOOGLE_CLOUD_STORAGE_OPTIONS)), is_required: false, support: if cfg!(feature = "stores") { Support::Used } else { Support::Unsupported("this program writes artifacts into directories only: dipc-fleet monitor writes to object stores") } },
        Property { name: "ParquetDataSet", shape: Shape::Map(&Shape::Object(&PARQUET_DATA_SET_OPTIONS)), is_required: false, support: if cfg!(feature = "stores") { Support::Used } else { Support::Unsupported("this program writes no data sets: dipc-fleet monitor does, and dipc-fleet export, of recordings") } },
    ],
};

static EVENT_COUNTER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "ProviderName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "CounterName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "GreaterThan", shape: Shape::Number(f64::NEG_INFINITY, f64::INFINITY), is_required: false, support: Support::Used },
        Property { name: "LessThan", shape: Shape::Number(f64::NEG_INFINITY, f64::INFINITY), is_required: false, support: Support::Used },
        Property { name: "SlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
    ],
};

const EVENT_LEVEL: &[&str] = &["LogAlways", "Critical", "Error", "Warning", "Informational", "Verbose"];

static EVENT_METER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "MeterName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "InstrumentName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "GreaterThan", shape: Shape::Number(f64::NEG_INFINITY, f64::INFINITY), is_required: false, support: Support::Used },
        Property { name: "LessThan", shape: Shape::Number(f64::NEG_INFINITY, f64::INFINITY), is_required: false, support: Support::Used },
        Property { name: "SlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
        Property { name: "HistogramPercentile", shape: Shape::Integer(0, 100), is_required: false, support: Support::Used },
    ],
};

static EVENT_METRICS_METER: Object = Object {
    properties: &[
        Property { name: "MeterName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "InstrumentNames", shape: Shape::List(&Shape::Text), is_required: false, support: Support::Used },
    ],
};

static EVENT_METRICS_PROVIDER: Object = Object {
    properties: &[
        Property { name: "ProviderName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "CounterNames", shape: Shape::List(&Shape::Text), is_required: false, support: Support::Used },
    ],
};

static EVENT_PIPE_PROVIDER: Object = Object {
    properties: &[
        Property { name: "Name", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "Keywords", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "EventLevel", shape: Shape::Enum(EVENT_LEVEL), is_required: false, support: Support::Used },
        Property { name: "Arguments", shape: Shape::Map(&Shape::Text), is_required: false, support: Support::Used },
    ],
};

static EXCEPTIONS_CONFIGURATION: Object = Object {
    properties: &[
        Property { name: "Include", shape: Shape::List(&Shape::Object(&EXCEPTION_FILTER)), is_required: false, support: Support::Used },
        Property { name: "Exclude", shape: Shape::List(&Shape::Object(&EXCEPTION_FILTER)), is_required: false, support: Support::Used },
    ],
};

static EXCEPTIONS_DEBUG_OPTIONS: Object = Object {
    properties: &[
        Property { name: "IncludeMonitorExceptions", shape: Shape::Boolean, is_required: false, support: Support::Used },
    ],
};

static EXCEPTIONS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Enabled", shape: Shape::Boolean, is_required: false, support: Support::Ignored("/exceptions answers from a session") },
        Property { name: "TopLevelLimit", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Ignored("/exceptions has those that are thrown from the request on") },
        Property { name: "CollectionFilters", shape: Shape::Object(&EXCEPTIONS_CONFIGURATION), is_required: false, support: Support::Ignored("/exceptions has filters in its body") },
        Property { name: "CollectOnStartup", shape: Shape::Boolean, is_required: false, support: Support::Ignored("/exceptions has those that are thrown from the request on") },
    ],
};

static EXCEPTION_FILTER: Object = Object {
    properties: &[
        Property { name: "ExceptionType", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "ModuleName", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "TypeName", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "MethodName", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

const EXCEPTION_FORMAT: &[&str] = &["NewlineDelimitedJson", "PlainText", "JsonSequence"];

static EXECUTE_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Path", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "Arguments", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "IgnoreExitCode", shape: Shape::Boolean, is_required: false, support: Support::Used },
    ],
};

static FILE_SYSTEM_EGRESS_PROVIDER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "DirectoryPath", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "IntermediateDirectoryPath", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "CopyBufferSize", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Ignored("artifacts are written in pieces of a fixed size") },
    ],
};

static GC_HEAP_SIZE_OPTIONS: Object = Object {
    properties: &[
        Property { name: "GreaterThan", shape: Shape::Number(0.0, f64::INFINITY), is_required: false, support: Support::Used },
        Property { name: "LessThan", shape: Shape::Number(0.0, f64::INFINITY), is_required: false, support: Support::Used },
        Property { name: "SlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
    ],
};

static GET_ENVIRONMENT_VARIABLE_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Name", shape: Shape::Text, is_required: true, support: Support::Used },
    ],
};

static GLOBAL_COUNTER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "IntervalSeconds", shape: Shape::Number(1.0, 86400.0), is_required: false, support: Support::Used },
        Property { name: "MaxHistograms", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "MaxTimeSeries", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Used },
        Property { name: "Providers", shape: Shape::Map(&Shape::Object(&GLOBAL_PROVIDER_OPTIONS)), is_required: false, support: Support::Used },
    ],
};

static GLOBAL_PROVIDER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "IntervalSeconds", shape: Shape::Number(1.0, 86400.0), is_required: false, support: Support::Used },
    ],
};

static GOOGLE_CLOUD_STORAGE_OPTIONS: Object = Object {
    properties: &[
        Property { name: "BucketName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "Prefix", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "Endpoint", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "ServiceAccountPath", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "ServiceAccountKey", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static IN_PROCESS_FEATURES_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Enabled", shape: Shape::Boolean, is_required: false, support: Support::Ignored("/stacks and /exceptions answer from sessions: no code is loaded into processes") },
        Property { name: "CallStacks", shape: Shape::Object(&CALL_STACKS_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "Exceptions", shape: Shape::Object(&EXCEPTIONS_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "ParameterCapturing", shape: Shape::Object(&PARAMETER_CAPTURING_OPTIONS), is_required: false, support: Support::Used },
    ],
};

static LOAD_PROFILER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Path", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "Clsid", shape: Shape::Guid, is_required: true, support: Support::Used },
    ],
};

static LOGGING_OPTIONS: Object = Object {
    properties: &[
        Property { name: "LogLevel", shape: Shape::Map(&Shape::Enum(LOG_LEVEL)), is_required: false, support: Support::Used },
        Property { name: "Console", shape: Shape::Object(&CONSOLE_LOGGER_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "EventLog", shape: Shape::Object(&LOG_LEVEL_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "Debug", shape: Shape::Object(&LOG_LEVEL_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "EventSource", shape: Shape::Object(&LOG_LEVEL_OPTIONS), is_required: false, support: Support::Used },
        Property { name: "CaptureScopes", shape: Shape::Boolean, is_required: false, support: Support::Used },
    ],
};

const LOG_FORMAT: &[&str] = &["NewlineDelimitedJson", "PlainText", "JsonSequence"];

const LOG_LEVEL: &[&str] = &["Trace", "Debug", "Information", "Warning", "Error", "Critical", "None"];

static LOG_LEVEL_OPTIONS: Object = Object {
    properties: &[
        Property { name: "LogLevel", shape: Shape::Map(&Shape::Enum(LOG_LEVEL)), is_required: false, support: Support::Used },
    ],
};

static METER_CONFIGURATION: Object = Object {
    properties: &[
        Property { name: "MeterName", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "InstrumentNames", shape: Shape::List(&Shape::Text), is_required: false, support: Support::Used },
    ],
};

static METRICS_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Enabled", shape: Shape::Boolean, is_required: false, support: Support::Used },
        Property { name: "Endpoints", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "MetricCount", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Ignored("each value is reported once, without a time stamp") },
        Property { name: "IncludeDefaultProviders", shape: Shape::Boolean, is_required: false, support: Support::Used },
        Property { name: "Providers", shape: Shape::List(&Shape::Object(&METRIC_PROVIDER)), is_required: false, support: Support::Used },
        Property { name: "Meters", shape: Shape::List(&Shape::Object(&METER_CONFIGURATION)), is_required: false, support: Support::Used },
    ],
};

static METRIC_PROVIDER: Object = Object {
    properties: &[
        Property { name: "ProviderName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "CounterNames", shape: Shape::List(&Shape::Text), is_required: false, support: Support::Used },
    ],
};

static MONITOR_API_KEY_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Subject", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "PublicKey", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "Issuer", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static PARAMETER_CAPTURING_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Enabled", shape: Shape::Boolean, is_required: false, support: Support::Unsupported("parameters of methods need code in the process; use an ILogger or an EventSource there") },
    ],
};

static PARQUET_DATA_SET_OPTIONS: Object = Object {
    properties: &[
        Property { name: "DirectoryPath", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "Labels", shape: Shape::Map(&Shape::Text), is_required: false, support: Support::Used },
    ],
};

static PROCESS_FILTER_DESCRIPTOR: Object = Object {
    properties: &[
        Property { name: "Key", shape: Shape::Enum(PROCESS_FILTER_KEY), is_required: false, support: Support::Used },
        Property { name: "Value", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "MatchType", shape: Shape::Enum(PROCESS_FILTER_TYPE), is_required: false, support: Support::Used },
        Property { name: "ProcessName", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "ProcessId", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "CommandLine", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "ManagedEntryPointAssemblyName", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

const PROCESS_FILTER_KEY: &[&str] = &["ProcessId", "ProcessName", "CommandLine", "ManagedEntryPointAssemblyName"];

static PROCESS_FILTER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Filters", shape: Shape::List(&Shape::Object(&PROCESS_FILTER_DESCRIPTOR)), is_required: false, support: Support::Used },
    ],
};

const PROCESS_FILTER_TYPE: &[&str] = &["Exact", "Contains"];

static S3_STORAGE_EGRESS_PROVIDER_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Endpoint", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "BucketName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "RegionName", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "AccessKeyId", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "SecretAccessKey", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "AwsProfileName", shape: Shape::Text, is_required: false, support: Support::Ignored("keys are in the configuration, in AWS_ACCESS_KEY_ID, or those of the machine") },
        Property { name: "AwsProfilePath", shape: Shape::Text, is_required: false, support: Support::Ignored("keys are in the configuration, in AWS_ACCESS_KEY_ID, or those of the machine") },
        Property { name: "PreSignedUrlExpiry", shape: Shape::Duration, is_required: false, support: Support::Ignored("artifacts have no URLs of their own") },
        Property { name: "ForcePathStyle", shape: Shape::Boolean, is_required: false, support: Support::Ignored("the bucket is always in the path") },
        Property { name: "CopyBufferSize", shape: Shape::Integer(1, 2_147_483_647), is_required: false, support: Support::Ignored("artifacts are sent in parts of a fixed size") },
        Property { name: "UseKmsEncryption", shape: Shape::Boolean, is_required: false, support: Support::Used },
        Property { name: "KmsEncryptionKey", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static SET_ENVIRONMENT_VARIABLE_OPTIONS: Object = Object {
    properties: &[
        Property { name: "Name", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "Value", shape: Shape::Text, is_required: false, support: Support::Used },
    ],
};

static STORAGE_OPTIONS: Object = Object {
    properties: &[
        Property { name: "DefaultSharedPath", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "DumpTempFolder", shape: Shape::Text, is_required: false, support: Support::Used },
        Property { name: "SharedLibraryPath", shape: Shape::Text, is_required: false, support: Support::Ignored("no library is copied into processes") },
    ],
};

static TEMPLATE_OPTIONS: Object = Object {
    properties: &[
        Property { name: "CollectionRuleFilters", shape: Shape::Map(&Shape::Object(&PROCESS_FILTER_DESCRIPTOR)), is_required: false, support: Support::Used },
        Property { name: "CollectionRuleTriggers", shape: Shape::Map(&Shape::Tagged(&COLLECTION_RULE_TRIGGER_OPTIONS, COLLECTION_RULE_TRIGGERS)), is_required: false, support: Support::Used },
        Property { name: "CollectionRuleActions", shape: Shape::Map(&Shape::Tagged(&COLLECTION_RULE_ACTION_OPTIONS, COLLECTION_RULE_ACTIONS)), is_required: false, support: Support::Used },
        Property { name: "CollectionRuleLimits", shape: Shape::Map(&Shape::Object(&COLLECTION_RULE_LIMITS_OPTIONS)), is_required: false, support: Support::Used },
    ],
};

static THREADPOOL_QUEUE_LENGTH_OPTIONS: Object = Object {
    properties: &[
        Property { name: "GreaterThan", shape: Shape::Number(0.0, f64::INFINITY), is_required: false, support: Support::Used },
        Property { name: "LessThan", shape: Shape::Number(0.0, f64::INFINITY), is_required: false, support: Support::Used },
        Property { name: "SlidingWindowDuration", shape: Shape::Duration, is_required: false, support: Support::Used },
    ],
};

static TRACE_EVENT_FILTER: Object = Object {
    properties: &[
        Property { name: "ProviderName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "EventName", shape: Shape::Text, is_required: true, support: Support::Used },
        Property { name: "PayloadFilter", shape: Shape::Map(&Shape::Text), is_required: false, support: Support::Used },
    ],
};

const TRACE_PROFILE: &[&str] = &["Cpu", "Http", "Logs", "Metrics", "GcCollect"];
