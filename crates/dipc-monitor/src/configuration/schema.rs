//! The keys of dotnet-monitor's configuration: their shapes as in its schema, and their effect in this
//! program.
//!
//! A test compares this table with the schema. Beyond the schema, a rule may name templates in place of
//! objects.

use super::shape::{Object, Shape, Variant, optional, required};

pub(crate) static ROOT: Object = Object::new(
    "",
    &[
        optional("Logging", Shape::Object(&LOGGING_OPTIONS))
            .ignored("dipc logs to standard error: -q and -v choose how much"),
        optional("Authentication", Shape::Object(&AUTHENTICATION_OPTIONS)),
        optional("CollectionRules", Shape::Map(&Shape::Object(&COLLECTION_RULE_OPTIONS))),
        optional("GlobalCounter", Shape::Object(&GLOBAL_COUNTER_OPTIONS)),
        optional("InProcessFeatures", Shape::Object(&IN_PROCESS_FEATURES_OPTIONS)),
        optional("CorsConfiguration", Shape::Object(&CORS_CONFIGURATION_OPTIONS))
            .unsupported("pages of other origins cannot call this service"),
        optional("DiagnosticPort", Shape::TextOr(&Shape::Object(&DIAGNOSTIC_PORT_OPTIONS))),
        optional("Egress", Shape::Object(&EGRESS_OPTIONS)),
        optional("Metrics", Shape::Object(&METRICS_OPTIONS)),
        optional("Storage", Shape::Object(&STORAGE_OPTIONS)),
        optional("DefaultProcess", Shape::Object(&PROCESS_FILTER_OPTIONS)),
        optional("CollectionRuleDefaults", Shape::Object(&COLLECTION_RULE_DEFAULTS_OPTIONS)),
        optional("Templates", Shape::Object(&TEMPLATE_OPTIONS)),
        optional("DotnetMonitorDebug", Shape::Object(&DOTNET_MONITOR_DEBUG_OPTIONS))
            .ignored("it is for developers of dotnet-monitor"),
    ],
);

static LOGGING_OPTIONS: Object = Object::new(
    "LoggingOptions",
    &[
        optional("LogLevel", Shape::Map(&Shape::Enum(LOG_LEVEL))),
        optional("Console", Shape::Object(&CONSOLE_LOGGER_OPTIONS)),
        optional("EventLog", Shape::Object(&LOG_LEVEL_OPTIONS)),
        optional("Debug", Shape::Object(&LOG_LEVEL_OPTIONS)),
        optional("EventSource", Shape::Object(&LOG_LEVEL_OPTIONS)),
        optional("CaptureScopes", Shape::Boolean),
    ],
);

static CONSOLE_LOGGER_OPTIONS: Object = Object::new(
    "ConsoleLoggerOptions",
    &[
        optional("FormatterName", Shape::Enum(CONSOLE_LOGGER_FORMAT)),
        optional("LogToStandardErrorThreshold", Shape::Enum(LOG_LEVEL)),
        optional("FormatterOptions", Shape::Any),
        optional("LogLevel", Shape::Map(&Shape::Enum(LOG_LEVEL))),
    ],
);

static LOG_LEVEL_OPTIONS: Object =
    Object::new("LogLevelOptions", &[optional("LogLevel", Shape::Map(&Shape::Enum(LOG_LEVEL)))]);

static AUTHENTICATION_OPTIONS: Object = Object::new(
    "AuthenticationOptions",
    &[
        optional("MonitorApiKey", Shape::Object(&MONITOR_API_KEY_OPTIONS)).unsupported_unless(
            cfg!(feature = "jwt"),
            "dipc-fleet accepts JSON Web Tokens, this program does not: it needs --token-file, --temp-api-key or \
             --no-auth in its place",
        ),
        optional("AzureAd", Shape::Object(&AZURE_AD_OPTIONS))
            .unsupported(
                "Entra ID is not supported: --token-file, --temp-api-key or --no-auth is needed in its place",
            ),
    ],
);

static MONITOR_API_KEY_OPTIONS: Object = Object::new(
    "MonitorApiKeyOptions",
    &[required("Subject", Shape::Text), required("PublicKey", Shape::Text), optional("Issuer", Shape::Text)],
);

static AZURE_AD_OPTIONS: Object = Object::new(
    "AzureAdOptions",
    &[
        optional("Instance", Shape::Uri),
        required("TenantId", Shape::Text),
        required("ClientId", Shape::Text),
        optional("AppIdUri", Shape::Uri),
        required("RequiredRole", Shape::Text),
    ],
);

static COLLECTION_RULE_OPTIONS: Object = Object::new(
    "CollectionRuleOptions",
    &[
        optional("Filters", Shape::List(&Shape::TextOr(&Shape::Object(&PROCESS_FILTER_DESCRIPTOR)))),
        required("Trigger", Shape::TextOr(&Shape::Tagged(&COLLECTION_RULE_TRIGGER_OPTIONS, TRIGGERS))),
        optional(
            "Actions",
            Shape::List(&Shape::TextOr(&Shape::Tagged(&COLLECTION_RULE_ACTION_OPTIONS, ACTIONS))),
        ),
        optional("Limits", Shape::TextOr(&Shape::Object(&COLLECTION_RULE_LIMITS_OPTIONS))),
    ],
);

static PROCESS_FILTER_DESCRIPTOR: Object = Object::new(
    "ProcessFilterDescriptor",
    &[
        optional("Key", Shape::Enum(PROCESS_FILTER_KEY)),
        optional("Value", Shape::Text),
        optional("MatchType", Shape::Enum(PROCESS_FILTER_TYPE)),
        optional("ProcessName", Shape::Text),
        optional("ProcessId", Shape::Text),
        optional("CommandLine", Shape::Text),
        optional("ManagedEntryPointAssemblyName", Shape::Text),
    ],
);

static COLLECTION_RULE_TRIGGER_OPTIONS: Object = Object::new(
    "CollectionRuleTriggerOptions",
    &[required("Type", Shape::Enum(COLLECTION_RULE_TRIGGER_TYPE)), optional("Settings", Shape::Settings)],
);

static COLLECTION_RULE_ACTION_OPTIONS: Object = Object::new(
    "CollectionRuleActionOptions",
    &[
        optional("Name", Shape::Text),
        required("Type", Shape::Enum(COLLECTION_RULE_ACTION_TYPE)),
        optional("Settings", Shape::Settings),
        optional("WaitForCompletion", Shape::Boolean),
    ],
);

static COLLECTION_RULE_LIMITS_OPTIONS: Object = Object::new(
    "CollectionRuleLimitsOptions",
    &[
        optional("ActionCount", Shape::Integer(1, 2_147_483_647)),
        optional("ActionCountSlidingWindowDuration", Shape::Duration),
        optional("RuleDuration", Shape::Duration),
    ],
);

static GLOBAL_COUNTER_OPTIONS: Object = Object::new(
    "GlobalCounterOptions",
    &[
        optional("IntervalSeconds", Shape::Number(1.0, 86400.0)),
        optional("MaxHistograms", Shape::Integer(1, 2_147_483_647)),
        optional("MaxTimeSeries", Shape::Integer(1, 2_147_483_647)),
        optional("Providers", Shape::Map(&Shape::Object(&GLOBAL_PROVIDER_OPTIONS))),
    ],
);

static GLOBAL_PROVIDER_OPTIONS: Object =
    Object::new("GlobalProviderOptions", &[optional("IntervalSeconds", Shape::Number(1.0, 86400.0))]);

static IN_PROCESS_FEATURES_OPTIONS: Object = Object::new(
    "InProcessFeaturesOptions",
    &[
        optional("Enabled", Shape::Boolean)
            .ignored("/stacks and /exceptions answer from sessions: no code is loaded into processes"),
        optional("CallStacks", Shape::Object(&CALL_STACKS_OPTIONS)),
        optional("Exceptions", Shape::Object(&EXCEPTIONS_OPTIONS)),
        optional("ParameterCapturing", Shape::Object(&PARAMETER_CAPTURING_OPTIONS)),
    ],
);

static CALL_STACKS_OPTIONS: Object = Object::new(
    "CallStacksOptions",
    &[optional("Enabled", Shape::Boolean).ignored("/stacks answers from a session")],
);

/// The reason why settings about exceptions before a request are ignored.
const NO_HISTORY: &str = "/exceptions has those that are thrown from the request on";

static EXCEPTIONS_OPTIONS: Object = Object::new(
    "ExceptionsOptions",
    &[
        optional("Enabled", Shape::Boolean).ignored("/exceptions answers from a session"),
        optional("TopLevelLimit", Shape::Integer(1, 2_147_483_647)).ignored(NO_HISTORY),
        optional("CollectionFilters", Shape::Object(&EXCEPTIONS_CONFIGURATION))
            .ignored("/exceptions has filters in its body"),
        optional("CollectOnStartup", Shape::Boolean).ignored(NO_HISTORY),
    ],
);

static EXCEPTIONS_CONFIGURATION: Object = Object::new(
    "ExceptionsConfiguration",
    &[
        optional("Include", Shape::List(&Shape::Object(&EXCEPTION_FILTER))),
        optional("Exclude", Shape::List(&Shape::Object(&EXCEPTION_FILTER))),
    ],
);

static EXCEPTION_FILTER: Object = Object::new(
    "ExceptionFilter",
    &[
        optional("ExceptionType", Shape::Text),
        optional("ModuleName", Shape::Text),
        optional("TypeName", Shape::Text),
        optional("MethodName", Shape::Text),
    ],
);

static PARAMETER_CAPTURING_OPTIONS: Object = Object::new(
    "ParameterCapturingOptions",
    &[optional("Enabled", Shape::Boolean).unsupported(
        "parameters of methods need code in the process; use an ILogger or an EventSource there",
    )],
);

static CORS_CONFIGURATION_OPTIONS: Object =
    Object::new("CorsConfigurationOptions", &[required("AllowedOrigins", Shape::Text)]);

static DIAGNOSTIC_PORT_OPTIONS: Object = Object::new(
    "DiagnosticPortOptions",
    &[
        optional("ConnectionMode", Shape::Enum(DIAGNOSTIC_PORT_CONNECTION_MODE)),
        optional("EndpointName", Shape::Text),
        optional("MaxConnections", Shape::Integer(-2_147_483_648, 2_147_483_647))
            .ignored("the number of processes is bounded by the monitor"),
        optional("DeleteEndpointOnStartup", Shape::Boolean)
            .ignored("a socket that nobody listens at is replaced in any case"),
    ],
);

/// The reason for which providers of stores are not supported.
const NO_STORES: &str =
    "this program writes artifacts into directories only: dipc-fleet monitor writes to object stores";

const NO_DATA_SETS: &str =
    "this program writes no data sets: dipc-fleet monitor does, and dipc-fleet export, of recordings";

static EGRESS_OPTIONS: Object = Object::new(
    "EgressOptions",
    &[
        optional("FileSystem", Shape::Map(&Shape::Object(&FILE_SYSTEM_EGRESS_PROVIDER_OPTIONS))),
        optional("Properties", Shape::Map(&Shape::Text))
            .ignored_unless(cfg!(feature = "stores"), "only providers that are not supported have secrets"),
        optional("AzureBlobStorage", Shape::Map(&Shape::Object(&AZURE_BLOB_EGRESS_PROVIDER_OPTIONS)))
            .unsupported_unless(cfg!(feature = "stores"), NO_STORES),
        optional("S3Storage", Shape::Map(&Shape::Object(&S3_STORAGE_EGRESS_PROVIDER_OPTIONS)))
            .unsupported_unless(cfg!(feature = "stores"), NO_STORES),
        // Not dotnet-monitor's.
        optional("GoogleCloudStorage", Shape::Map(&Shape::Object(&GOOGLE_CLOUD_STORAGE_OPTIONS)))
            .unsupported_unless(cfg!(feature = "stores"), NO_STORES),
        optional("ParquetDataSet", Shape::Map(&Shape::Object(&PARQUET_DATA_SET_OPTIONS)))
            .unsupported_unless(cfg!(feature = "stores"), NO_DATA_SETS),
    ],
);

static GOOGLE_CLOUD_STORAGE_OPTIONS: Object = Object::new(
    "GoogleCloudStorageOptions",
    &[
        required("BucketName", Shape::Text),
        optional("Prefix", Shape::Text),
        optional("Endpoint", Shape::Text),
        optional("ServiceAccountPath", Shape::Text),
        optional("ServiceAccountKey", Shape::Text),
    ],
);

static PARQUET_DATA_SET_OPTIONS: Object = Object::new(
    "ParquetDataSetOptions",
    &[required("DirectoryPath", Shape::Text), optional("Labels", Shape::Map(&Shape::Text))],
);

static FILE_SYSTEM_EGRESS_PROVIDER_OPTIONS: Object = Object::new(
    "FileSystemEgressProviderOptions",
    &[
        required("DirectoryPath", Shape::Text),
        optional("IntermediateDirectoryPath", Shape::Text),
        optional("CopyBufferSize", Shape::Integer(1, 2_147_483_647))
            .ignored("artifacts are written in pieces of a fixed size"),
    ],
);

static METRICS_OPTIONS: Object = Object::new(
    "MetricsOptions",
    &[
        optional("Enabled", Shape::Boolean),
        optional("Endpoints", Shape::Text),
        optional("MetricCount", Shape::Integer(1, 2_147_483_647))
            .ignored("each value is reported once, without a time stamp"),
        optional("IncludeDefaultProviders", Shape::Boolean),
        optional("Providers", Shape::List(&Shape::Object(&METRIC_PROVIDER))),
        optional("Meters", Shape::List(&Shape::Object(&METER_CONFIGURATION))),
    ],
);

static METRIC_PROVIDER: Object = Object::new(
    "MetricProvider",
    &[required("ProviderName", Shape::Text), optional("CounterNames", Shape::List(&Shape::Text))],
);

static METER_CONFIGURATION: Object = Object::new(
    "MeterConfiguration",
    &[optional("MeterName", Shape::Text), optional("InstrumentNames", Shape::List(&Shape::Text))],
);

static STORAGE_OPTIONS: Object = Object::new(
    "StorageOptions",
    &[
        optional("DefaultSharedPath", Shape::Text),
        optional("DumpTempFolder", Shape::Text),
        optional("SharedLibraryPath", Shape::Text).ignored("no library is copied into processes"),
    ],
);

static PROCESS_FILTER_OPTIONS: Object = Object::new(
    "ProcessFilterOptions",
    &[optional("Filters", Shape::List(&Shape::Object(&PROCESS_FILTER_DESCRIPTOR)))],
);

static COLLECTION_RULE_DEFAULTS_OPTIONS: Object = Object::new(
    "CollectionRuleDefaultsOptions",
    &[
        optional("Triggers", Shape::Object(&COLLECTION_RULE_TRIGGER_DEFAULTS_OPTIONS)),
        optional("Actions", Shape::Object(&COLLECTION_RULE_ACTION_DEFAULTS_OPTIONS)),
        optional("Limits", Shape::Object(&COLLECTION_RULE_LIMITS_DEFAULTS_OPTIONS)),
    ],
);

static COLLECTION_RULE_TRIGGER_DEFAULTS_OPTIONS: Object = Object::new(
    "CollectionRuleTriggerDefaultsOptions",
    &[
        optional("RequestCount", Shape::Integer(1, 2_147_483_647)),
        optional("ResponseCount", Shape::Integer(1, 2_147_483_647)),
        optional("SlidingWindowDuration", Shape::Duration),
    ],
);

static COLLECTION_RULE_ACTION_DEFAULTS_OPTIONS: Object =
    Object::new("CollectionRuleActionDefaultsOptions", &[optional("Egress", Shape::Text)]);

static COLLECTION_RULE_LIMITS_DEFAULTS_OPTIONS: Object = Object::new(
    "CollectionRuleLimitsDefaultsOptions",
    &[
        optional("ActionCount", Shape::Integer(1, 2_147_483_647)),
        optional("ActionCountSlidingWindowDuration", Shape::Duration),
        optional("RuleDuration", Shape::Duration),
    ],
);

static TEMPLATE_OPTIONS: Object = Object::new(
    "TemplateOptions",
    &[
        optional("CollectionRuleFilters", Shape::Map(&Shape::Object(&PROCESS_FILTER_DESCRIPTOR))),
        optional(
            "CollectionRuleTriggers",
            Shape::Map(&Shape::Tagged(&COLLECTION_RULE_TRIGGER_OPTIONS, TRIGGERS)),
        ),
        optional(
            "CollectionRuleActions",
            Shape::Map(&Shape::Tagged(&COLLECTION_RULE_ACTION_OPTIONS, ACTIONS)),
        ),
        optional("CollectionRuleLimits", Shape::Map(&Shape::Object(&COLLECTION_RULE_LIMITS_OPTIONS))),
    ],
);

static DOTNET_MONITOR_DEBUG_OPTIONS: Object = Object::new(
    "DotnetMonitorDebugOptions",
    &[optional("Exceptions", Shape::Object(&EXCEPTIONS_DEBUG_OPTIONS))],
);

static EXCEPTIONS_DEBUG_OPTIONS: Object =
    Object::new("ExceptionsDebugOptions", &[optional("IncludeMonitorExceptions", Shape::Boolean)]);

static COLLECT_DUMP_OPTIONS: Object = Object::new(
    "CollectDumpOptions",
    &[
        optional("Type", Shape::Enum(DUMP_TYPE)),
        optional("Egress", Shape::Text),
        optional("ArtifactName", Shape::Text),
    ],
);

static COLLECT_EXCEPTIONS_OPTIONS: Object = Object::new(
    "CollectExceptionsOptions",
    &[
        optional("Egress", Shape::Text),
        optional("Format", Shape::Enum(EXCEPTION_FORMAT)),
        optional("Filters", Shape::Object(&EXCEPTIONS_CONFIGURATION)),
        // Not dotnet-monitor's, which has the exceptions of the past.
        optional("Duration", Shape::Duration),
        optional("ArtifactName", Shape::Text),
    ],
);

static COLLECT_GC_DUMP_OPTIONS: Object = Object::new(
    "CollectGCDumpOptions",
    &[optional("Egress", Shape::Text), optional("ArtifactName", Shape::Text)],
);

static COLLECT_SNAPSHOT_OPTIONS: Object = Object::new(
    "CollectSnapshotOptions",
    &[optional("Egress", Shape::Text), optional("ArtifactName", Shape::Text)],
);

static CONDITION_OPTIONS: Object = Object::new("ConditionOptions", &[required("Condition", Shape::Text)]);

static COLLECT_LIVE_METRICS_OPTIONS: Object = Object::new(
    "CollectLiveMetricsOptions",
    &[
        optional("IncludeDefaultProviders", Shape::Boolean),
        optional("Providers", Shape::List(&Shape::Object(&EVENT_METRICS_PROVIDER))),
        optional("Meters", Shape::List(&Shape::Object(&EVENT_METRICS_METER))),
        optional("Duration", Shape::Duration),
        optional("Egress", Shape::Text),
        optional("ArtifactName", Shape::Text),
    ],
);

static EVENT_METRICS_PROVIDER: Object = Object::new(
    "EventMetricsProvider",
    &[required("ProviderName", Shape::Text), optional("CounterNames", Shape::List(&Shape::Text))],
);

static EVENT_METRICS_METER: Object = Object::new(
    "EventMetricsMeter",
    &[required("MeterName", Shape::Text), optional("InstrumentNames", Shape::List(&Shape::Text))],
);

static COLLECT_LOGS_OPTIONS: Object = Object::new(
    "CollectLogsOptions",
    &[
        optional("DefaultLevel", Shape::Enum(LOG_LEVEL)),
        optional("FilterSpecs", Shape::Map(&Shape::Enum(LOG_LEVEL))),
        optional("UseAppFilters", Shape::Boolean),
        optional("Duration", Shape::Duration),
        optional("Egress", Shape::Text),
        optional("Format", Shape::Enum(LOG_FORMAT)),
        optional("ArtifactName", Shape::Text),
    ],
);

static COLLECT_STACKS_OPTIONS: Object = Object::new(
    "CollectStacksOptions",
    &[
        optional("Egress", Shape::Text),
        optional("Format", Shape::Enum(CALL_STACK_FORMAT)),
        optional("ArtifactName", Shape::Text),
    ],
);

static COLLECT_TRACE_OPTIONS: Object = Object::new(
    "CollectTraceOptions",
    &[
        optional("Profile", Shape::Flags(TRACE_PROFILE)),
        optional("Providers", Shape::List(&Shape::Object(&EVENT_PIPE_PROVIDER))),
        optional("RequestRundown", Shape::Boolean),
        optional("BufferSizeMegabytes", Shape::Integer(1, 1024)),
        optional("Duration", Shape::Duration),
        optional("Egress", Shape::Text),
        optional("StoppingEvent", Shape::Object(&TRACE_EVENT_FILTER)),
        optional("ArtifactName", Shape::Text),
    ],
);

static EVENT_PIPE_PROVIDER: Object = Object::new(
    "EventPipeProvider",
    &[
        required("Name", Shape::Text),
        optional("Keywords", Shape::Text),
        optional("EventLevel", Shape::Enum(EVENT_LEVEL)),
        optional("Arguments", Shape::Map(&Shape::Text)),
    ],
);

static TRACE_EVENT_FILTER: Object = Object::new(
    "TraceEventFilter",
    &[
        required("ProviderName", Shape::Text),
        required("EventName", Shape::Text),
        optional("PayloadFilter", Shape::Map(&Shape::Text)),
    ],
);

static EXECUTE_OPTIONS: Object = Object::new(
    "ExecuteOptions",
    &[
        required("Path", Shape::Text),
        optional("Arguments", Shape::Text),
        optional("IgnoreExitCode", Shape::Boolean),
    ],
);

static LOAD_PROFILER_OPTIONS: Object =
    Object::new("LoadProfilerOptions", &[required("Path", Shape::Text), required("Clsid", Shape::Guid)]);

static SET_ENVIRONMENT_VARIABLE_OPTIONS: Object = Object::new(
    "SetEnvironmentVariableOptions",
    &[required("Name", Shape::Text), optional("Value", Shape::Text)],
);

static GET_ENVIRONMENT_VARIABLE_OPTIONS: Object =
    Object::new("GetEnvironmentVariableOptions", &[required("Name", Shape::Text)]);

static ASP_NET_REQUEST_COUNT_OPTIONS: Object = Object::new(
    "AspNetRequestCountOptions",
    &[
        optional("RequestCount", Shape::Integer(1, 2_147_483_647)),
        optional("SlidingWindowDuration", Shape::Duration),
        optional("IncludePaths", Shape::List(&Shape::Text)),
        optional("ExcludePaths", Shape::List(&Shape::Text)),
    ],
);

static ASP_NET_REQUEST_DURATION_OPTIONS: Object = Object::new(
    "AspNetRequestDurationOptions",
    &[
        optional("RequestCount", Shape::Integer(1, 2_147_483_647)),
        optional("RequestDuration", Shape::Duration),
        optional("SlidingWindowDuration", Shape::Duration),
        optional("IncludePaths", Shape::List(&Shape::Text)),
        optional("ExcludePaths", Shape::List(&Shape::Text)),
    ],
);

static ASP_NET_RESPONSE_STATUS_OPTIONS: Object = Object::new(
    "AspNetResponseStatusOptions",
    &[
        required("StatusCodes", Shape::List(&Shape::Text)),
        optional("ResponseCount", Shape::Integer(1, 2_147_483_647)),
        // The name in the documentation of dotnet-monitor.
        optional("RequestCount", Shape::Integer(1, 2_147_483_647)),
        optional("SlidingWindowDuration", Shape::Duration),
        optional("IncludePaths", Shape::List(&Shape::Text)),
        optional("ExcludePaths", Shape::List(&Shape::Text)),
    ],
);

static EVENT_COUNTER_OPTIONS: Object = Object::new(
    "EventCounterOptions",
    &[
        required("ProviderName", Shape::Text),
        required("CounterName", Shape::Text),
        optional("GreaterThan", Shape::Number(f64::NEG_INFINITY, f64::INFINITY)),
        optional("LessThan", Shape::Number(f64::NEG_INFINITY, f64::INFINITY)),
        optional("SlidingWindowDuration", Shape::Duration),
    ],
);

static CPU_USAGE_OPTIONS: Object = Object::new(
    "CPUUsageOptions",
    &[
        optional("GreaterThan", Shape::Number(0.0, 100.0)),
        optional("LessThan", Shape::Number(0.0, 100.0)),
        optional("SlidingWindowDuration", Shape::Duration),
    ],
);

static GC_HEAP_SIZE_OPTIONS: Object = Object::new(
    "GCHeapSizeOptions",
    &[
        optional("GreaterThan", Shape::Number(0.0, f64::INFINITY)),
        optional("LessThan", Shape::Number(0.0, f64::INFINITY)),
        optional("SlidingWindowDuration", Shape::Duration),
    ],
);

static THREADPOOL_QUEUE_LENGTH_OPTIONS: Object = Object::new(
    "ThreadpoolQueueLengthOptions",
    &[
        optional("GreaterThan", Shape::Number(0.0, f64::INFINITY)),
        optional("LessThan", Shape::Number(0.0, f64::INFINITY)),
        optional("SlidingWindowDuration", Shape::Duration),
    ],
);

static EVENT_METER_OPTIONS: Object = Object::new(
    "EventMeterOptions",
    &[
        required("MeterName", Shape::Text),
        required("InstrumentName", Shape::Text),
        optional("GreaterThan", Shape::Number(f64::NEG_INFINITY, f64::INFINITY)),
        optional("LessThan", Shape::Number(f64::NEG_INFINITY, f64::INFINITY)),
        optional("SlidingWindowDuration", Shape::Duration),
        optional("HistogramPercentile", Shape::Integer(0, 100)),
    ],
);

const PARTS: &str = "artifacts are sent in parts of a fixed size";
const NO_MESSAGES: &str = "no message is put into a queue when an artifact has arrived";
const NO_PROFILES: &str = "keys are in the configuration, in AWS_ACCESS_KEY_ID, or those of the machine";

static AZURE_BLOB_EGRESS_PROVIDER_OPTIONS: Object = Object::new(
    "AzureBlobEgressProviderOptions",
    &[
        required("AccountUri", Shape::Uri),
        optional("AccountKey", Shape::Text),
        optional("AccountKeyName", Shape::Text),
        optional("SharedAccessSignature", Shape::Text),
        optional("SharedAccessSignatureName", Shape::Text),
        optional("ManagedIdentityClientId", Shape::Text),
        optional("UseWorkloadIdentityFromEnvironment", Shape::Boolean),
        required("ContainerName", Shape::Text),
        optional("BlobPrefix", Shape::Text),
        optional("CopyBufferSize", Shape::Integer(1, 2_147_483_647)).ignored(PARTS),
        optional("QueueName", Shape::Text).ignored(NO_MESSAGES),
        optional("QueueAccountUri", Shape::Uri).ignored(NO_MESSAGES),
        optional("QueueSharedAccessSignature", Shape::Text).ignored(NO_MESSAGES),
        optional("QueueSharedAccessSignatureName", Shape::Text).ignored(NO_MESSAGES),
        optional("Metadata", Shape::Map(&Shape::Text)).ignored("objects have no metadata"),
    ],
);

static S3_STORAGE_EGRESS_PROVIDER_OPTIONS: Object = Object::new(
    "S3StorageEgressProviderOptions",
    &[
        optional("Endpoint", Shape::Text),
        required("BucketName", Shape::Text),
        optional("RegionName", Shape::Text),
        optional("AccessKeyId", Shape::Text),
        optional("SecretAccessKey", Shape::Text),
        optional("AwsProfileName", Shape::Text).ignored(NO_PROFILES),
        optional("AwsProfilePath", Shape::Text).ignored(NO_PROFILES),
        optional("PreSignedUrlExpiry", Shape::Duration).ignored("artifacts have no URLs of their own"),
        optional("ForcePathStyle", Shape::Boolean).ignored("the bucket is always in the path"),
        optional("CopyBufferSize", Shape::Integer(1, 2_147_483_647)).ignored(PARTS),
        optional("UseKmsEncryption", Shape::Boolean),
        optional("KmsEncryptionKey", Shape::Text),
    ],
);

const LOG_LEVEL: &[&str] = &["Trace", "Debug", "Information", "Warning", "Error", "Critical", "None"];
const CONSOLE_LOGGER_FORMAT: &[&str] = &["Json", "Simple", "Systemd"];
const PROCESS_FILTER_KEY: &[&str] =
    &["ProcessId", "ProcessName", "CommandLine", "ManagedEntryPointAssemblyName"];
const PROCESS_FILTER_TYPE: &[&str] = &["Exact", "Contains"];
const DIAGNOSTIC_PORT_CONNECTION_MODE: &[&str] = &["Connect", "Listen"];
const COLLECTION_RULE_ACTION_TYPE: &[&str] = &[
    "CollectDump",
    "CollectExceptions",
    "CollectGCDump",
    "CollectLiveMetrics",
    "CollectLogs",
    "CollectStacks",
    "CollectTrace",
    "Execute",
    "LoadProfiler",
    "SetEnvironmentVariable",
    "GetEnvironmentVariable",
    "CollectSnapshot",
];
const DUMP_TYPE: &[&str] = &["Full", "Mini", "WithHeap", "Triage"];
const EXCEPTION_FORMAT: &[&str] = &["NewlineDelimitedJson", "PlainText", "JsonSequence"];
const LOG_FORMAT: &[&str] = &["NewlineDelimitedJson", "PlainText", "JsonSequence"];
const CALL_STACK_FORMAT: &[&str] = &["Json", "PlainText", "Speedscope"];
const TRACE_PROFILE: &[&str] = &["Cpu", "Http", "Logs", "Metrics", "GcCollect"];
const EVENT_LEVEL: &[&str] = &["LogAlways", "Critical", "Error", "Warning", "Informational", "Verbose"];
const COLLECTION_RULE_TRIGGER_TYPE: &[&str] = &[
    "AspNetRequestCount",
    "AspNetRequestDuration",
    "AspNetResponseStatus",
    "EventCounter",
    "CPUUsage",
    "GCHeapSize",
    "ThreadpoolQueueLength",
    "EventMeter",
    "Startup",
    "Condition",
];
pub(crate) const TRIGGERS: &[Variant] = &[
    Variant {
        name: "AspNetRequestCount",
        settings: Some(&ASP_NET_REQUEST_COUNT_OPTIONS),
        is_required: false,
    },
    Variant {
        name: "AspNetRequestDuration",
        settings: Some(&ASP_NET_REQUEST_DURATION_OPTIONS),
        is_required: false,
    },
    Variant {
        name: "AspNetResponseStatus",
        settings: Some(&ASP_NET_RESPONSE_STATUS_OPTIONS),
        is_required: true,
    },
    Variant { name: "EventCounter", settings: Some(&EVENT_COUNTER_OPTIONS), is_required: true },
    Variant { name: "CPUUsage", settings: Some(&CPU_USAGE_OPTIONS), is_required: false },
    Variant { name: "GCHeapSize", settings: Some(&GC_HEAP_SIZE_OPTIONS), is_required: false },
    Variant {
        name: "ThreadpoolQueueLength",
        settings: Some(&THREADPOOL_QUEUE_LENGTH_OPTIONS),
        is_required: false,
    },
    Variant { name: "EventMeter", settings: Some(&EVENT_METER_OPTIONS), is_required: true },
    Variant { name: "Startup", settings: None, is_required: false },
    Variant { name: "Condition", settings: Some(&CONDITION_OPTIONS), is_required: true },
];
pub(crate) const ACTIONS: &[Variant] = &[
    Variant { name: "CollectDump", settings: Some(&COLLECT_DUMP_OPTIONS), is_required: false },
    Variant { name: "CollectExceptions", settings: Some(&COLLECT_EXCEPTIONS_OPTIONS), is_required: false },
    Variant { name: "CollectGCDump", settings: Some(&COLLECT_GC_DUMP_OPTIONS), is_required: false },
    Variant { name: "CollectLiveMetrics", settings: Some(&COLLECT_LIVE_METRICS_OPTIONS), is_required: false },
    Variant { name: "CollectLogs", settings: Some(&COLLECT_LOGS_OPTIONS), is_required: false },
    Variant { name: "CollectStacks", settings: Some(&COLLECT_STACKS_OPTIONS), is_required: false },
    Variant { name: "CollectTrace", settings: Some(&COLLECT_TRACE_OPTIONS), is_required: false },
    Variant { name: "Execute", settings: Some(&EXECUTE_OPTIONS), is_required: true },
    Variant { name: "LoadProfiler", settings: Some(&LOAD_PROFILER_OPTIONS), is_required: true },
    Variant {
        name: "SetEnvironmentVariable",
        settings: Some(&SET_ENVIRONMENT_VARIABLE_OPTIONS),
        is_required: true,
    },
    Variant {
        name: "GetEnvironmentVariable",
        settings: Some(&GET_ENVIRONMENT_VARIABLE_OPTIONS),
        is_required: true,
    },
    Variant { name: "CollectSnapshot", settings: Some(&COLLECT_SNAPSHOT_OPTIONS), is_required: false },
];
/// Triggers and actions that dotnet-monitor does not have.
#[cfg(test)]
pub(crate) const OWN: [&str; 2] = ["Condition", "CollectSnapshot"];
