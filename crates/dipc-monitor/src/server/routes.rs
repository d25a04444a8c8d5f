//! The answers of the routes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use clr_counters::prometheus::Format;
use dipc_client::Uuid;
use dipc_http::is_local_host;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, Request, Response, StatusCode};

use super::body::AnswerBody;
use super::collect;
use super::health::Health;
use super::json::{
    self, Capability, Info, OperationStatus, OperationSummary, ProcessDetails, ProcessIdentifier,
    RuleDescription, RuleDetails,
};
use super::overview::{CountersRow, Overview};
use super::problem::Problem;
use super::route::Route;
use super::service::Service;
use crate::access::Scope;
use crate::artifact::{ProcessSelector, Query, StoredRequest};
use crate::egress::EgressQueue;
use crate::metrics::Metrics;
use crate::operation::{Operation, OperationState};
use crate::process::Watched;
use crate::rules::RuleStatus;

/// Maximum size of a body of a request, in bytes.
const MAX_BODY_SIZE: usize = 1 << 20;
/// The time for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(10);

/// The header that states which site's page sends a request: Fetch Metadata Request Headers, by W3C.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// The socket that received a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listener {
    /// True if only `/metrics` answers there.
    pub(super) is_metrics: bool,
    /// True if it is a TCP port that only this machine reaches.
    pub(super) is_loopback: bool,
    /// True if it has TLS.
    pub(super) is_tls: bool,
}

impl Service {
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        listener: Listener,
    ) -> Response<AnswerBody> {
        match self.route(request, listener).await {
            Ok(response) => response,
            Err(problem) => problem.response(),
        }
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        listener: Listener,
    ) -> Result<Response<AnswerBody>, Problem> {
        let host = header(&request, &HOST).map(ToOwned::to_owned);
        if listener.is_loopback && host.as_deref().is_some_and(|host| !is_local_host(host)) {
            let detail = "the Host is neither localhost nor an address";
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "Misdirected Request", detail));
        }
        let path = request.uri().path().to_owned();
        let route = Route::parse(&path).filter(|route| !listener.is_metrics || *route == Route::Metrics);
        let Some(route) = route else {
            let detail =
                if listener.is_metrics { "only /metrics answers here" } else { "there is no such route" };
            return Err(Problem::new(StatusCode::NOT_FOUND, "Not Found", detail));
        };
        if !route.methods().split(", ").any(|method| method == request.method().as_str()) {
            return Err(Problem::method_not_allowed(route.methods()));
        }
        if let Some(scope) = route.scope(request.method()) {
            self.authorize(&request, scope)?;
        }
        let query = Query::parse(request.uri().query());
        // A client at a Unix socket does not have a host name for it.
        let scheme = if listener.is_tls { "https" } else { "http" };
        let base = host.map(|host| format!("{scheme}://{host}")).unwrap_or_default();
        match route {
            Route::Page => Ok(self.page.response()),
            Route::Overview => Ok(json::response(StatusCode::OK, &Overview::of(self))),
            Route::Counters => self.counters(),
            Route::Processes => Ok(self.processes()),
            Route::Info => Ok(self.info()),
            Route::Health => Ok(json::response(StatusCode::OK, &Health::of(self, self.start))),
            Route::Metrics => self.metrics(&request),
            Route::Process => {
                let process = self.process(&query)?;
                Ok(json::response(StatusCode::OK, &ProcessDetails::of(&process)))
            }
            Route::Environment => self.environment(self.process(&query)?).await,
            Route::Operations => self.list_operations(&query),
            Route::Operation(id) => self.operation(id, &query, request.method()),
            Route::Profile => {
                self.require_http_egress()?;
                self.profile(&query).await
            }
            Route::Recordings => self.list_recordings().await,
            Route::Recording(id) => {
                self.require_http_egress()?;
                self.recording(id, header(&request, &ACCEPT)).await
            }
            Route::Rules => {
                let process = self.process(&query)?;
                let statuses = self.rule_statuses(&process);
                let rules: BTreeMap<&str, _> =
                    statuses.iter().map(|status| (&*status.name, RuleDescription::of(status))).collect();
                Ok(json::response(StatusCode::OK, &rules))
            }
            Route::Rule(name) => self.rule(name, &query),
            Route::Parameters => Err(Problem::not_implemented(
                "/parameters needs code inside the process, which dipc does not load: log the parameters, or use a debugger",
            )),
            Route::Dump
            | Route::GcDump
            | Route::Trace
            | Route::Logs
            | Route::LiveMetrics
            | Route::Stacks
            | Route::Exceptions
            | Route::FlameGraph
            | Route::Top
            | Route::Requests
            | Route::Why
            | Route::Memory
            | Route::Snapshot => {
                let process = self.process(&query)?;
                if let Some(provider) = query.get("egressProvider").filter(|name| !name.is_empty()) {
                    let queue = self.queue.as_ref().ok_or_else(|| {
                        let what = format!(
                            "there is no egress provider '{provider}': no configuration has one, or another monitor has the queue"
                        );
                        Problem::invalid("egressProvider", what)
                    })?;
                    queue.destination(provider)?;
                    let stored = self.stored(&path, request).await?;
                    return self.promise(queue, process, stored, query.tags(), provider, &base).await;
                }
                if self.no_http_egress {
                    return Err(Problem::invalid(
                        "egressProvider",
                        "it is required: HTTP egress is switched off",
                    ));
                }
                let artifact = self.stored(&path, request).await?.artifact()?;
                collect::answer(&self.operations, &self.runtime, process, artifact, query.tags(), &base).await
            }
        }
    }

    /// Refuses to send what no egress provider takes, if artifacts are not sent.
    fn require_http_egress(&self) -> Result<(), Problem> {
        if self.no_http_egress {
            let detail = "artifacts are not sent: HTTP egress is switched off";
            return Err(Problem::new(StatusCode::FORBIDDEN, "Forbidden", detail));
        }
        Ok(())
    }

    fn rule(&self, name: &str, query: &Query) -> Result<Response<AnswerBody>, Problem> {
        let process = self.process(query)?;
        let statuses = self.rule_statuses(&process);
        let name = percent_decoded(name);
        let status = statuses.iter().find(|status| status.name == name).ok_or_else(|| {
            Problem::bad_request(format!("the process has no rule '{name}': /collectionrules lists them"))
        })?;
        Ok(json::response(StatusCode::OK, &RuleDetails::of(status)))
    }

    async fn stored(&self, path: &str, request: Request<Incoming>) -> Result<StoredRequest, Problem> {
        let counter_interval = self.settings.lock().counter_interval;
        stored(path, request, counter_interval).await
    }

    /// Has the queue collect an artifact for an egress provider. The promise is on disk before the answer.
    async fn promise(
        &self,
        queue: &EgressQueue,
        process: Arc<Watched>,
        stored: StoredRequest,
        tags: BTreeSet<String>,
        provider: &str,
        base: &str,
    ) -> Result<Response<AnswerBody>, Problem> {
        let artifact = stored.artifact()?;
        let egress = Some(provider.to_owned());
        let operation = self.operations.begin(artifact.kind(), &process, tags.clone(), egress)?;
        let id = operation.id;
        let (queue, provider) = (queue.clone(), provider.to_owned());
        let promised = tokio::task::spawn_blocking(move || {
            queue.promise(operation, process, artifact, stored, tags, &provider)
        });
        promised.await.map_err(|error| Problem::bad_request(error.to_string()))??;
        let mut response = Response::new(AnswerBody::whole(Vec::new()));
        *response.status_mut() = StatusCode::ACCEPTED;
        let location = HeaderValue::try_from(format!("{base}/operations/{id}"));
        response.headers_mut().extend(location.ok().map(|value| (LOCATION, value)));
        Ok(response)
    }

    /// Checks the token of a request. Without tokens, everyone who can connect may do everything, except
    /// pages of other sites in the user's browser: browsers state which site's page sends a request.
    fn authorize(&self, request: &Request<Incoming>, scope: Scope) -> Result<(), Problem> {
        if self.tokens.is_empty() {
            let site = request.headers().get(SEC_FETCH_SITE);
            if site.is_some_and(|site| site != "same-origin" && site != "none") {
                let detail =
                    "a page of another site has sent it: open the monitor's own page, or use a token";
                return Err(Problem::new(StatusCode::FORBIDDEN, "Forbidden", detail));
            }
            return Ok(());
        }
        let value = header(request, &AUTHORIZATION).unwrap_or_default();
        let token = match value.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("Bearer") => token.trim(),
            _ => return Err(Problem::unauthorized()),
        };
        match self.tokens.permits(token, scope) {
            Some(true) => Ok(()),
            Some(false) => {
                let detail = format!("the token does not have the scope '{}'", scope.name());
                Err(Problem::new(StatusCode::FORBIDDEN, "Forbidden", detail))
            }
            None => Err(Problem::unauthorized()),
        }
    }

    /// The process that a request is about.
    fn process(&self, query: &Query) -> Result<Arc<Watched>, Problem> {
        let selector = query.process()?;
        let mut processes = self.monitor.processes();
        if selector == ProcessSelector::default() {
            let settings = self.settings.lock();
            processes.retain(|process| settings.matches(process));
        } else {
            processes.retain(|process| {
                let names = [process.title(), &process.facts.name];
                names.iter().any(|name| selector.matches(process.facts.pid, process.uid, name))
            });
        }
        let count = processes.len();
        match processes.pop() {
            Some(process) if count == 1 => Ok(process),
            Some(_) => Err(Problem::bad_request(format!(
                "{count} processes match: name one by pid, uid or name; /processes lists them"
            ))),
            None => Err(Problem::bad_request("no process matches: /processes lists the watched processes")),
        }
    }

    fn processes(&self) -> Response<AnswerBody> {
        let processes = self.monitor.processes();
        let settings = self.settings.lock();
        let has_default = !settings.default_process.is_empty();
        let is_default = |process: &Arc<Watched>| has_default && settings.matches(process);
        let default_count = processes.iter().filter(|process| is_default(process)).count();
        let is_only = processes.len() == 1 && !has_default;
        let list: Vec<_> = processes
            .iter()
            .map(|process| {
                ProcessIdentifier::of(process, is_only || default_count == 1 && is_default(process))
            })
            .collect();
        json::response(StatusCode::OK, &list)
    }

    fn info(&self) -> Response<AnswerBody> {
        let port = self.monitor.port_address();
        let capability = |(name, enabled)| Capability { name, enabled };
        let capabilities = [
            ("exceptions", true),
            ("parameters", false),
            ("call_stacks", true),
            ("metrics", self.metrics.is_some()),
            ("http_egress", !self.no_http_egress),
        ];
        let info = Info {
            version: &self.version,
            runtime_version: "none",
            diagnostic_port_mode: if port.is_some() { "Listen" } else { "Connect" },
            diagnostic_port_name: port.map(ToString::to_string),
            capabilities: capabilities.into_iter().map(capability).collect(),
        };
        json::response(StatusCode::OK, &info)
    }

    fn metrics(&self, request: &Request<Incoming>) -> Result<Response<AnswerBody>, Problem> {
        let metrics = self.counter_values()?;
        let format = Format::negotiate(header(request, &ACCEPT));
        let mut response =
            Response::new(AnswerBody::whole(metrics.encode(format, &Health::of(self, self.start).metrics())));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
        Ok(response)
    }

    async fn environment(&self, process: Arc<Watched>) -> Result<Response<AnswerBody>, Problem> {
        let answer = tokio::task::spawn_blocking(move || process.target().environment()).await;
        let variables = match answer {
            Ok(Ok(variables)) => variables,
            Ok(Err(error)) => return Err(Problem::bad_request(error.to_string())),
            Err(error) => return Err(Problem::bad_request(error.to_string())),
        };
        let pairs: BTreeMap<&str, &str> =
            variables.iter().filter_map(|variable| variable.split_once('=')).collect();
        Ok(json::response(StatusCode::OK, &pairs))
    }

    fn counters(&self) -> Result<Response<AnswerBody>, Problem> {
        let metrics = self.counter_values()?;
        let processes = self.monitor.processes();
        let rows = processes.iter().map(|process| CountersRow::of(process, metrics.summary(process)));
        Ok(json::response(StatusCode::OK, &rows.collect::<Vec<_>>()))
    }

    /// The last values of counters.
    fn counter_values(&self) -> Result<&Metrics, Problem> {
        let off = "metrics are switched off: start without --metrics false";
        self.metrics.as_deref().ok_or_else(|| Problem::bad_request(off))
    }

    pub(super) fn rule_statuses(&self, process: &Watched) -> Vec<RuleStatus> {
        self.rules.as_ref().map(|rules| rules.statuses(process)).unwrap_or_default()
    }

    fn list_operations(&self, query: &Query) -> Result<Response<AnswerBody>, Problem> {
        let (selector, tags) = (query.process()?, query.tags());
        let mut operations = self.operations.list();
        operations
            .retain(|it| selector.matches(it.pid, it.uid, &it.process_name) && tags.is_subset(&it.tags));
        let list: Vec<_> = operations.iter().map(OperationSummary::of).collect();
        Ok(json::response(StatusCode::OK, &list))
    }

    fn operation(&self, id: &str, query: &Query, method: &Method) -> Result<Response<AnswerBody>, Problem> {
        let unknown = || Problem::bad_request(format!("there is no operation '{id}'"));
        let parsed = Uuid::try_parse(id).map_err(|_| Problem::invalid("operationId", "it is not a UUID"))?;
        if method == Method::GET {
            let operation = self.operations.get(parsed).ok_or_else(unknown)?;
            let has_succeeded = operation.state == OperationState::Succeeded;
            let status = if has_succeeded { StatusCode::CREATED } else { StatusCode::OK };
            return Ok(json::response(status, &OperationStatus::of(&operation)));
        }
        let (result, status) = if query.flag("stop")? {
            (self.operations.stop(parsed), StatusCode::ACCEPTED)
        } else {
            (self.operations.cancel(parsed), StatusCode::OK)
        };
        let before: Operation = result.ok_or_else(unknown)?;
        if status == StatusCode::ACCEPTED && !before.is_stoppable() {
            return Err(Problem::bad_request(format!(
                "the operation is {}, and cannot be stopped: delete it without stop=true",
                before.state.name()
            )));
        }
        let mut response = Response::new(AnswerBody::whole(""));
        *response.status_mut() = status;
        Ok(response)
    }
}

impl ProcessSelector {
    fn matches(&self, pid: u32, uid: Uuid, name: &str) -> bool {
        self.pid.is_none_or(|wanted| wanted == pid)
            && self.uid.is_none_or(|wanted| wanted == uid)
            && self.name.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(name))
    }
}

/// Decodes a part of a path.
fn percent_decoded(part: &str) -> String {
    // These mean something in a form only.
    let part = part.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let mut pairs = form_urlencoded::parse(part.as_bytes());
    pairs.next().map(|(text, _)| text.into_owned()).unwrap_or_default()
}

fn header<'r>(request: &'r Request<Incoming>, name: &HeaderName) -> Option<&'r str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

/// Reads the artifact settings of a request.
async fn stored(
    path: &str,
    request: Request<Incoming>,
    counter_interval: Duration,
) -> Result<StoredRequest, Problem> {
    let stored = StoredRequest {
        route: path.trim_matches('/').to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        accept: header(&request, &ACCEPT).map(ToOwned::to_owned),
        body: None,
        counter_interval: Some(counter_interval),
    };
    if request.method() != Method::POST {
        return Ok(stored);
    }
    let body = String::from_utf8(body(request).await?);
    let body = body.map_err(|_| Problem::invalid("$", "not valid JSON: it is not UTF-8"))?;
    Ok(StoredRequest { body: Some(body), ..stored })
}

/// Reads the body of a request, which must be JSON.
async fn body(request: Request<Incoming>) -> Result<Vec<u8>, Problem> {
    let media_type = header(&request, &CONTENT_TYPE).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = matches!(&*media_type, "application/json" | "text/json")
        || media_type.starts_with("application/") && media_type.ends_with("+json");
    if !is_json {
        let detail = "the body has to be application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type", detail));
    }
    let collected = Limited::new(request.into_body(), MAX_BODY_SIZE).collect();
    match tokio::time::timeout(BODY_TIME, collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
        Ok(Err(_)) => {
            let detail = format!("the body is cut, or longer than {MAX_BODY_SIZE} bytes");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "Content Too Large", detail))
        }
        Err(_) => {
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "Request Timeout", "the body did not arrive"))
        }
    }
}
