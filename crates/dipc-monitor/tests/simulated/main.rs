//! The monitor and its server over simulated runtimes, which connect to a port of the test: no other process
//! of the machine is touched.

#![cfg(unix)]

#[cfg(feature = "jwt")]
mod api_key;
mod black_box;
#[allow(dead_code, reason = "the pages of recordings are files")]
#[path = "../../../dipc-cli/tests/page/browser.rs"]
mod browser;
mod contract;
mod dumps;
mod egress;
mod faults;
mod http;
mod otlp;
mod own_state;
mod page;
mod recordings;
mod routes;
mod rules;
mod sessions;
#[cfg(feature = "stores")]
mod stores;
#[cfg(feature = "tls")]
mod tls;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dipc_client::dipc_transport::Address;
use dipc_monitor::configuration::{Configuration, ConfigurationSources};
use dipc_monitor::{
    ListenAddress, Metrics, MetricsConfig, Monitor, MonitorConfig, Operations, ProcessObserver, RuleMessage,
    Rules, RulesConfig, Server, ServerConfig, Tokens,
};
use dipc_sim::{Builder, Runtime};
use dipc_wire::PortConfig;
use tempfile::TempDir;

/// Longer than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A monitor that watches the runtimes at a port, and its server.
struct Fixture {
    server: Server,
    monitor: Arc<Monitor>,
    operations: Operations,
    rules: Arc<Rules>,
    /// The messages of rules.
    messages: Arc<Mutex<Vec<RuleMessage>>>,
    port: PortConfig,
    _folder: Option<TempDir>,
}

impl Fixture {
    fn start() -> Self {
        Self::with(Tokens::default(), None)
    }

    fn with(tokens: Tokens, metrics: Option<MetricsConfig>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = Address::from(folder.path().join("port").as_path());
        Self { _folder: Some(folder), ..Self::at(port, tokens, metrics, RulesConfig::default()) }
    }

    /// Starts with the rules of a configuration.
    fn with_rules(configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = Address::from(folder.path().join("port").as_path());
        let rules = rules_config(configuration);
        Self { _folder: Some(folder), ..Self::at(port, Tokens::default(), None, rules) }
    }

    /// The same at a TCP port, where the process of a runtime is not visible: these runtimes are threads of
    /// the test's process, which does not end.
    fn over_tcp() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), Tokens::default(), None, RulesConfig::default())
    }

    fn at(port: Address, tokens: Tokens, metrics: Option<MetricsConfig>, rules: RulesConfig) -> Self {
        Self::observed(port, tokens, metrics, rules, Vec::new(), |config| config)
    }

    /// Starts with other settings of the server.
    fn with_server(change: impl FnOnce(ServerConfig) -> ServerConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = Address::from(folder.path().join("port").as_path());
        Self { _folder: Some(folder), ..Self::at_with_server(port, change) }
    }

    fn at_with_server(port: Address, change: impl FnOnce(ServerConfig) -> ServerConfig) -> Self {
        Self::observed(port, Tokens::default(), None, RulesConfig::default(), Vec::new(), change)
    }

    /// The same with more observers, and other settings of the server.
    fn observed(
        port: Address,
        tokens: Tokens,
        metrics: Option<MetricsConfig>,
        rules: RulesConfig,
        more: Vec<Arc<dyn ProcessObserver>>,
        change: impl FnOnce(ServerConfig) -> ServerConfig,
    ) -> Self {
        let config = MonitorConfig::default().with_port(Some(port));
        Self::monitored(config, tokens, metrics, rules, more, change)
    }

    /// The same with settings of the monitor, of which the port is one.
    fn monitored(
        config: MonitorConfig,
        tokens: Tokens,
        metrics: Option<MetricsConfig>,
        rules: RulesConfig,
        more: Vec<Arc<dyn ProcessObserver>>,
        change: impl FnOnce(ServerConfig) -> ServerConfig,
    ) -> Self {
        let metrics = metrics.map(|config| Arc::new(Metrics::new(config)));
        let operations = Operations::default();
        let messages = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&messages);
        let log = Arc::new(move |message: &RuleMessage| log.lock().unwrap().push(message.clone()));
        let config_of_server = ServerConfig::default()
            .with_addresses(vec!["http://127.0.0.1:0".parse().unwrap()])
            .with_tokens(tokens)
            .with_version("test".to_owned());
        let config_of_server = change(config_of_server);
        let rules = Rules::new(rules, operations.clone(), "host".to_owned(), log);
        let rules = Arc::new(rules.with_queue(config_of_server.queue.clone()));
        let metrics_observer = metrics.iter().map(|it| Arc::clone(it) as Arc<dyn ProcessObserver>);
        let observers = metrics_observer.chain([Arc::clone(&rules) as Arc<dyn ProcessObserver>]);
        let observers = observers.chain(more).collect();
        let monitor = Arc::new(Monitor::start(config.with_only_port(true), observers).unwrap());
        let config_of_server = config_of_server.with_rules(Some(Arc::clone(&rules)));
        let server =
            Server::start(config_of_server, Arc::clone(&monitor), metrics, operations.clone()).unwrap();
        let port = monitor.port_address().unwrap().to_string().parse().unwrap();
        Self { server, monitor, operations, rules, messages, port, _folder: None }
    }

    fn address(&self) -> SocketAddr {
        match &self.server.addresses()[0] {
            ListenAddress::Tcp(address) => *address,
            other => panic!("{other}"),
        }
    }

    /// Starts a runtime and waits until it is in the table and resumed: before, it writes no dump.
    fn add(&self, builder: Builder) -> Runtime {
        let count = self.monitor.processes().len();
        let runtime = builder.connect(&self.port).unwrap();
        await_that("the runtime is in the table", || self.monitor.processes().len() > count);
        await_that("the runtime is resumed", || !runtime.state().suspended);
        runtime
    }

    fn get(&self, path: &str) -> http::Answer {
        http::get(self.address(), path)
    }
}

/// The rules of a configuration without errors.
fn rules_config(configuration: &str) -> RulesConfig {
    let checked = Configuration::read(&ConfigurationSources::new().with_text("test", configuration));
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
    RulesConfig::of(&checked.configuration)
}

/// Waits until a condition holds.
fn await_that(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "it does not happen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A recording of EventCounters and Meters of .NET 10, one value a second.
fn counters() -> Vec<u8> {
    testdata::bytes("counters/net10-csv.nettrace.xz")
}
