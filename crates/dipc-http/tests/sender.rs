//! A sender of requests, and collectors that refuse, ask to wait, or leave.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use clr_counters::otlp::Request;
use dipc_http::{Endpoint, OtlpSender, RequestCount, SenderNote, SenderTotals};

/// Longer than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Remarks in words.
type Notes = Arc<Mutex<Vec<String>>>;

/// Starts a collector that gives these answers, one for each connection, and ends. Returns its port and the
/// bodies that it received.
fn collector(answers: &'static [&'static str]) -> (u16, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, bodies) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
    let received = Arc::clone(&bodies);
    thread::spawn(move || {
        for answer in answers {
            let mut reader = BufReader::new(listener.accept().unwrap().0);
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            received.lock().unwrap().push(body);
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    (port, bodies)
}

fn start(port: u16) -> (OtlpSender, Notes) {
    let notes = Notes::default();
    let taken = Arc::clone(&notes);
    let observer = move |note: SenderNote<'_>| taken.lock().unwrap().push(format!("{note:?}"));
    let endpoint = Endpoint::parse(&format!("http://127.0.0.1:{port}"), "/v1/metrics").unwrap();
    (OtlpSender::start(endpoint, Vec::new(), Box::new(observer)).unwrap(), notes)
}

fn await_totals(sender: &OtlpSender, is_reached: impl Fn(&SenderTotals) -> bool) {
    let start = Instant::now();
    while !is_reached(&sender.totals()) {
        assert!(start.elapsed() < PATIENCE, "{:?}", sender.totals());
        thread::sleep(Duration::from_millis(5));
    }
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[test]
fn requests_are_sent_again_in_order_unless_they_are_refused() {
    let (port, bodies) = collector(&[
        "HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nlater",
        TAKEN,
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nbad",
        TAKEN,
    ]);
    let (sender, notes) = start(port);
    for byte in 1..=3 {
        sender.send(Request::new(vec![byte], 10));
    }
    await_totals(&sender, |totals| totals.sent.requests + totals.dropped.requests == 3);
    let totals = sender.finish();
    assert_eq!(totals.sent, RequestCount { requests: 2, items: 20 });
    assert_eq!(totals.dropped, RequestCount { requests: 1, items: 10 });
    assert_eq!((totals.queued_bytes, totals.failure.as_deref()), (0, Some("HTTP 400 Bad Request: bad")));
    assert_eq!(*bodies.lock().unwrap(), [[1], [1], [2], [3]]);
    assert_eq!(
        *notes.lock().unwrap(),
        [
            "Failed { reason: \"HTTP 503 Service Unavailable: later\" }",
            "Resumed",
            "Failed { reason: \"HTTP 400 Bad Request: bad\" }",
            "Resumed"
        ]
    );
}

#[test]
fn the_rest_is_dropped_at_the_end_if_the_collector_does_not_take_it() {
    // Nobody listens there any more.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (sender, notes) = start(port);
    sender.send(Request::new(vec![1], 10));
    await_totals(&sender, |totals| totals.failure.is_some());
    let totals = sender.finish();
    assert_eq!(totals.sent, RequestCount::default());
    assert_eq!(totals.dropped, RequestCount { requests: 1, items: 10 });
    assert_eq!(notes.lock().unwrap().len(), 1, "{notes:?}");
}
