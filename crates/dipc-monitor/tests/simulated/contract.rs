//! dotnet-monitor's own description of its HTTP interface, `openapi.json`: every route, every parameter.

use clr_counters::prometheus::NameStyle;
use dipc_client::Uuid;
use serde_json::{Map, Value, json};

use super::*;

const PROBLEM: &str = "application/problem+json";
const RULES: &str = r#"{"CollectionRules":{"Known":{"Trigger":{"Type":"GCHeapSize","Settings":{"GreaterThan":1000000}},"Actions":[{"Type":"Execute","Settings":{"Path":"/bin/true"}}]}}}"#;

/// Routes with another status than the contract's, by design: what needs code inside of the process.
const DIFFERENCES: [(&str, &str, u16); 1] = [("POST", "/parameters", 501)];

/// Routes whose valid request succeeds with a simulated runtime that replays a recording.
const SUCCEED: [(&str, &str); 18] = [
    ("GET", "/processes"),
    ("GET", "/process"),
    ("GET", "/env"),
    ("GET", "/info"),
    ("GET", "/trace"),
    ("POST", "/trace"),
    ("GET", "/logs"),
    ("POST", "/logs"),
    ("GET", "/livemetrics"),
    ("POST", "/livemetrics"),
    ("GET", "/stacks"),
    ("GET", "/exceptions"),
    ("POST", "/exceptions"),
    ("GET", "/metrics"),
    ("GET", "/operations"),
    ("GET", "/operations/{operationId}"),
    ("GET", "/collectionrules"),
    ("GET", "/collectionrules/{collectionRuleName}"),
];

struct Contract(Value);

/// A route with a method.
struct Operation<'c> {
    method: String,
    path: &'c str,
    parameters: Vec<&'c Value>,
    body: Option<&'c Value>,
    responses: &'c Map<String, Value>,
}

impl Contract {
    fn read() -> Self {
        Self(serde_json::from_slice(&testdata::bytes("monitor/openapi.json.xz")).unwrap())
    }

    fn operations(&self) -> Vec<Operation<'_>> {
        let mut all = Vec::new();
        for (path, methods) in self.0["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                all.push(Operation {
                    method: method.to_uppercase(),
                    path,
                    parameters: operation["parameters"].as_array().into_iter().flatten().collect(),
                    body: operation.pointer("/requestBody/content/application~1json/schema"),
                    responses: operation["responses"].as_object().unwrap(),
                });
            }
        }
        all
    }

    fn resolve<'c>(&'c self, value: &'c Value) -> &'c Value {
        match value["$ref"].as_str() {
            Some(path) => self.0.pointer(path.strip_prefix('#').unwrap()).unwrap(),
            None => value,
        }
    }

    /// The media types of a response, each with its schema.
    fn content<'c>(&'c self, response: &'c Value) -> Vec<(&'c str, &'c Value)> {
        let content = self.resolve(response)["content"].as_object();
        content.into_iter().flatten().map(|(kind, content)| (&**kind, &content["schema"])).collect()
    }

    /// A value that a schema permits, with the required members only.
    fn example(&self, schema: &Value) -> Value {
        let schema = self.resolve(schema);
        if let Some(value) = schema["enum"].get(0) {
            return value.clone();
        }
        match schema["type"].as_str().unwrap() {
            "object" => {
                let required = schema["required"].as_array().into_iter().flatten();
                let member = |name: &Value| {
                    let name = name.as_str().unwrap();
                    (name.to_owned(), self.example(&schema["properties"][name]))
                };
                Value::Object(required.map(member).collect())
            }
            "array" => json!([self.example(&schema["items"])]),
            "string" => json!("System.Runtime"),
            "integer" => json!(1),
            "boolean" => json!(true),
            other => panic!("{other}"),
        }
    }

    /// Checks that a value conforms to a schema.
    fn check(&self, schema: &Value, value: &Value, place: &str) {
        let schema = self.resolve(schema);
        if value.is_null() {
            assert!(schema["nullable"] == true, "{place} is null");
            return;
        }
        if let Some(one) = schema["oneOf"].get(0) {
            return self.check(one, value, place);
        }
        if let Some(values) = schema["enum"].as_array() {
            assert!(values.contains(value), "{place}: {value}");
        }
        match schema["type"].as_str() {
            Some("object") => {
                let members = value.as_object().unwrap_or_else(|| panic!("{place}: {value}"));
                for name in schema["required"].as_array().into_iter().flatten() {
                    assert!(members.contains_key(name.as_str().unwrap()), "{place} has no {name}");
                }
                for (name, member) in members {
                    let place = format!("{place}.{name}");
                    match (schema["properties"].get(name), &schema["additionalProperties"]) {
                        (Some(known), _) => self.check(known, member, &place),
                        (None, Value::Bool(false)) => panic!("{place} is not in the contract"),
                        (None, Value::Object(_)) => {
                            self.check(&schema["additionalProperties"], member, &place);
                        }
                        (None, _) => {}
                    }
                }
            }
            Some("array") => {
                for item in value.as_array().unwrap_or_else(|| panic!("{place}: {value}")) {
                    self.check(&schema["items"], item, &format!("{place}[]"));
                }
            }
            Some("string") => {
                let text = value.as_str().unwrap_or_else(|| panic!("{place}: {value}"));
                match schema["format"].as_str() {
                    Some("uuid") => drop(text.parse::<Uuid>().unwrap()),
                    Some("date-time") => assert!(text.contains('T'), "{place}: {text}"),
                    _ => {}
                }
            }
            Some("integer") => assert!(value.is_i64() || value.is_u64(), "{place}: {value}"),
            Some("boolean") => assert!(value.is_boolean(), "{place}: {value}"),
            _ => {}
        }
    }

    /// Checks an answer: its status, its media type and its body.
    fn check_answer(&self, operation: &Operation<'_>, answer: &http::Answer, request: &str) {
        let Operation { method, path, responses, .. } = operation;
        let is_different = DIFFERENCES.contains(&(method, path, answer.status));
        let Some(response) = responses.get(&answer.status.to_string()) else {
            // The contract leaves out what every route can answer: 404 for what is not there, 415 and 501.
            let is_known = is_different || matches!(answer.status, 404 | 415);
            assert!(is_known && answer.header("content-type") == Some(PROBLEM), "{request}: {answer:?}");
            return;
        };
        let content = self.content(response);
        if content.is_empty() {
            return;
        }
        let kind = answer.header("content-type").unwrap_or_default();
        let described = content.iter().find(|(described, _)| kind.starts_with(described));
        let Some((_, schema)) = described else { panic!("{request}: {kind}: {}", answer.text()) };
        // Documents are described as texts.
        if kind.starts_with("application/json;") || kind == PROBLEM {
            self.check(schema, &answer.json(), request);
        }
    }
}

fn request(
    operation: &Operation<'_>,
    address: SocketAddr,
    query: &str,
    accept: &str,
    body: &str,
) -> http::Answer {
    let mut headers = format!("Accept: {accept}\r\n");
    if operation.body.is_some() {
        headers.push_str("Content-Type: application/json\r\n");
    }
    http::receive(http::send(address, &operation.method, query, &headers, body))
}

/// The path of a request with these values of parameters; those without a value are left out.
fn path_of(operation: &Operation<'_>, value: impl Fn(&str, &Value) -> Option<String>) -> String {
    let mut path = operation.path.to_owned();
    let mut query = Vec::new();
    for parameter in &operation.parameters {
        let name = parameter["name"].as_str().unwrap();
        let Some(value) = value(name, &parameter["schema"]) else { continue };
        if parameter["in"] == "path" {
            path = path.replace(&format!("{{{name}}}"), &value);
        } else {
            query.push(format!("{name}={value}"));
        }
    }
    if operation.path == "/exceptions" {
        // Exceptions of the past are not there: they are waited for, by default for half a minute.
        query.push("durationSeconds=1".to_owned());
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

/// A server with a runtime that replays a recording, a rule, metrics, and an operation that has ended.
fn start(folder: &TempDir) -> (Fixture, Runtime, String) {
    let metrics = MetricsConfig::new(NameStyle::OpenTelemetry).with_interval(Duration::from_secs(1));
    let port = Address::from(folder.path().join("port").as_path());
    let fixture = Fixture::at(port, Tokens::default(), Some(metrics), rules_config(RULES));
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz");
    let builder = Runtime::builder().cookie(Uuid::from_u128(0x1234));
    let runtime = fixture.add(builder.replay(recording).speed(dipc_sim::Speed::Max));
    let answer = fixture.get("/trace?durationSeconds=1");
    let location = answer.header("location").unwrap();
    let id = location.rsplit('/').next().unwrap().to_owned();
    (fixture, runtime, id)
}

fn known_value(name: &str, id: &str) -> Option<String> {
    match name {
        "uid" => Some(Uuid::from_u128(0x1234).to_string()),
        "durationSeconds" => Some("1".to_owned()),
        "collectionRuleName" => Some("Known".to_owned()),
        "operationId" => Some(id.to_owned()),
        _ => None,
    }
}

#[test]
fn every_route_of_the_contract_answers_as_described() {
    let contract = Contract::read();
    let folder = tempfile::tempdir().unwrap();
    let (fixture, _runtime, id) = start(&folder);
    let mut succeeded = Vec::new();
    let mut operations = contract.operations();
    // Those that end others come last.
    operations.sort_by_key(|operation| operation.method == "DELETE");
    for operation in &operations {
        let path = path_of(operation, |name, _| known_value(name, &id));
        let body = operation.body.map(|schema| contract.example(schema).to_string()).unwrap_or_default();
        let mut kinds: Vec<&str> =
            contract.content(&operation.responses["200"]).into_iter().map(|(kind, _)| kind).collect();
        if kinds.is_empty() {
            kinds.push("*/*");
        }
        for kind in kinds {
            let answer = request(operation, fixture.address(), &path, kind, &body);
            let text = format!("{} {path} ({kind})", operation.method);
            println!("{text}: {} {}", answer.status, answer.header("content-type").unwrap_or("-"));
            contract.check_answer(operation, &answer, &text);
            let is_success = answer.status < 300;
            if is_success && kind != "*/*" {
                // One kind is asked for: none other comes.
                assert!(answer.header("content-type").unwrap().starts_with(kind), "{text}: {answer:?}");
            }
            if SUCCEED.contains(&(&operation.method, operation.path)) {
                assert!(is_success && answer.is_whole, "{text}: {answer:?}");
                succeeded.push((operation.method.clone(), operation.path));
            }
        }
    }
    succeeded.dedup();
    assert_eq!(succeeded.len(), SUCCEED.len());
}

/// Values that are not of a parameter's schema.
fn wrong_values(contract: &Contract, schema: &Value) -> Vec<String> {
    let schema = contract.resolve(schema);
    let values: &[&str] = match (schema["type"].as_str(), schema["format"].as_str()) {
        _ if schema["enum"].is_array() => &["Nope", "0x1", "%00", "Full%20"],
        (Some("integer"), _) => &["x", "1.5", "99999999999999999999", "1e3", "0x10", "%2B1x"],
        (Some("boolean"), _) => &["maybe", "2", "yes%20"],
        (Some("string"), Some("uuid")) => &["7", "zzzzzzzz-0000-0000-0000-000000000000", "{", "%FF"],
        _ => &[],
    };
    values.iter().map(|&value| value.to_owned()).collect()
}

#[test]
fn rejects_routes_outside_of_the_contract() {
    let contract = Contract::read();
    let folder = tempfile::tempdir().unwrap();
    let (fixture, _runtime, id) = start(&folder);
    let mut refused = 0;
    for operation in contract.operations() {
        let example = operation.body.map(|schema| contract.example(schema).to_string()).unwrap_or_default();
        for parameter in &operation.parameters {
            let wrong = parameter["name"].as_str().unwrap();
            for value in wrong_values(&contract, &parameter["schema"]) {
                let path = path_of(&operation, |name, _| {
                    if name == wrong { Some(value.clone()) } else { known_value(name, &id) }
                });
                let answer = request(&operation, fixture.address(), &path, "*/*", &example);
                let is_refused = matches!(answer.status, 400 | 404)
                    || DIFFERENCES.contains(&(&operation.method, operation.path, answer.status));
                assert!(is_refused, "{} {path}: {answer:?}", operation.method);
                assert_eq!(answer.header("content-type"), Some(PROBLEM), "{} {path}", operation.method);
                refused += 1;
            }
        }
        if operation.body.is_some() && operation.path != "/parameters" {
            let path = path_of(&operation, |name, _| known_value(name, &id));
            for body in [
                "",
                "{",
                "[]",
                "7",
                "null",
                "\"x\"",
                "{\"unknown\":1}",
                "{\"providers\":7}",
                "{\"providers\":[{}]}",
                "{\"include\":{}}",
                "{\"logLevel\":\"Loud\"}",
                "{\"filterSpecs\":[]}",
                "\u{1}",
                "[[[[[[[[",
            ] {
                let answer = request(&operation, fixture.address(), &path, "*/*", body);
                assert!(matches!(answer.status, 400 | 415), "{path} {body}: {answer:?}");
                assert_eq!(answer.header("content-type"), Some(PROBLEM), "{path} {body}");
                refused += 1;
            }
        }
    }
    assert!(refused > 150, "{refused}");
}
