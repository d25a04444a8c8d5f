//! A receiver of OTLP metrics that reads them by the official messages.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, Metric, NumberDataPoint};
use prost::Message as _;

/// A receiver that refuses the first request for now, and takes all others.
pub(super) struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
}

#[derive(Default)]
struct Received {
    /// The heads of all requests.
    heads: Vec<String>,
    taken: Vec<ExportMetricsServiceRequest>,
}

impl Collector {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Received::default()));
        let shared = Arc::clone(&received);
        // The thread ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                take(&stream.unwrap(), &shared);
            }
        });
        Self { address, received }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Each metric of a name, oldest first.
    fn metrics(&self, name: &str) -> Vec<Metric> {
        let received = self.received.lock().unwrap();
        let resources = received.taken.iter().flat_map(|request| &request.resource_metrics);
        let scopes = resources.flat_map(|resource| &resource.scope_metrics);
        scopes.flat_map(|scope| &scope.metrics).filter(|metric| metric.name == name).cloned().collect()
    }

    /// The sum over all tags of a counter: of the last request, or of all where they have what was added.
    pub(super) fn number(&self, name: &str, is_delta: bool) -> Option<f64> {
        let mut sums = self.metrics(name).into_iter().map(|metric| {
            let Some(Data::Sum(sum)) = metric.data else { panic!("{name}: no sum") };
            assert!(sum.is_monotonic, "{name}");
            let expected =
                if is_delta { AggregationTemporality::Delta } else { AggregationTemporality::Cumulative };
            assert_eq!(sum.aggregation_temporality(), expected, "{name}");
            assert!(sum.data_points.iter().all(|point| point.time_unix_nano > point.start_time_unix_nano));
            sum.data_points.iter().map(number).sum::<f64>()
        });
        if is_delta { sums.reduce(|sum, next| sum + next) } else { sums.next_back() }
    }

    /// The number of a gauge without tags.
    pub(super) fn gauge(&self, name: &str) -> Option<f64> {
        let Some(Data::Gauge(gauge)) = self.metrics(name).pop()?.data else { panic!("{name}: no gauge") };
        gauge.data_points.first().map(number)
    }

    /// Count and sum of a summary.
    pub(super) fn summary(&self, name: &str) -> (u64, f64) {
        let Some(metric) = self.metrics(name).pop() else { return (0, 0.0) };
        let Some(Data::Summary(summary)) = metric.data else { panic!("{name}: no summary") };
        let points = summary.data_points.iter();
        points.fold((0, 0.0), |(count, sum), point| (count + point.count, sum + point.sum))
    }

    /// The attributes of the last request's resource.
    pub(super) fn resource(&self) -> BTreeMap<String, String> {
        let received = self.received.lock().unwrap();
        let resource = received.taken.last().unwrap().resource_metrics[0].resource.clone().unwrap();
        let text = |value: Option<Value>| match value {
            Some(Value::StringValue(text)) => text,
            Some(Value::IntValue(number)) => number.to_string(),
            other => panic!("{other:?}"),
        };
        let attributes = resource.attributes.into_iter();
        attributes.map(|pair| (pair.key, text(pair.value.and_then(|value| value.value)))).collect()
    }

    /// Every request had these headers, to the path that is OTLP's.
    pub(super) fn assert_headers(&self, headers: &[&str]) {
        let received = self.received.lock().unwrap();
        assert!(received.heads.len() > received.taken.len(), "one was refused, and sent again");
        for head in &received.heads {
            assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
            for header in headers {
                assert!(head.contains(header), "{header}: {head}");
            }
        }
    }
}

fn number(point: &NumberDataPoint) -> f64 {
    match point.value {
        Some(Number::AsDouble(number)) => number,
        other => panic!("{other:?}"),
    }
}

/// Reads a request, and answers it.
fn take(stream: &TcpStream, received: &Mutex<Received>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "a head that ends: {head}");
    }
    let head = head.replace(": ", ":").replace(':', ": ");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let request = ExportMetricsServiceRequest::decode(&*body).expect("an official message");
    let mut received = received.lock().unwrap();
    received.heads.push(head);
    let answer = if received.heads.len() == 1 {
        "503 Service Unavailable\r\nRetry-After: 0"
    } else {
        received.taken.push(request);
        "200 OK\r\nContent-Type: application/x-protobuf"
    };
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").unwrap();
}
