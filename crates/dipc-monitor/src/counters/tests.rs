use dipc_client::LiveReader;

use super::*;
use crate::process_log::ProcessReport;

struct Nobody;

impl CounterConsumer for Nobody {
    fn sample(&mut self, _: &Sample<'_>) {}
}

fn subscriber(list: &str, seconds: u64, exponential_histograms: bool) -> Subscriber {
    let request = CounterRequest::new(Selection::parse(list).unwrap(), Duration::from_secs(seconds));
    let request = request.with_exponential_histograms(exponential_histograms);
    Subscriber { id: 0, request, consumer: Box::new(Nobody), readings: None }
}

/// A consumer that notes the names and numbers of its samples.
struct Notes(Arc<Mutex<Vec<String>>>);

impl CounterConsumer for Notes {
    fn sample(&mut self, sample: &Sample<'_>) {
        self.0.lock().unwrap().push(note(sample));
    }
}

fn note(sample: &Sample<'_>) -> String {
    let series = sample.series;
    format!("{} {} {} {:?}", series.provider, series.name, series.tags, sample.measurement)
}

/// A program may make names for ever.
#[test]
fn values_of_too_many_series_are_counted_and_reported_once() {
    let messages = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&messages);
    let report = ProcessReport::new(move |message| noted.lock().unwrap().push(message.to_string()));
    let log = ProcessLog { pid: 7, process_name: "shop".to_owned(), report: Some(report) };
    let lost = LostEvents::default();
    let target = Target::from_path("/nowhere/socket");
    let shared = SharedCounters::new(target, Arc::new(AtomicBool::new(true)), lost.clone(), log);
    let selection = Selection::parse("System.Runtime").unwrap();
    {
        let mut state = shared.shared.state();
        let counters = Counters::new(selection.clone()).with_max_series(2);
        state.decoders.push(Decoder { number: 0, selection: selection.clone(), counters, left_out: 0 });
        state.next_decoder = 1;
    }
    let request = CounterRequest::new(selection, Duration::from_secs(1));
    let subscription = shared.subscribe(request, Box::new(Nobody));
    let mut reader = LiveReader::new(Duration::from_secs(1));
    reader.feed(&testdata::bytes("counters/net10-csv.nettrace.xz"));
    reader.end_of_input();
    for _ in 0..2 {
        shared.shared.deliver(&mut CounterEvents::new(&mut reader), true);
    }
    let left_out = shared.shared.state().decoders[0].counters.left_out();
    assert!(left_out > 0);
    assert_eq!(lost.left_out_values.load(Ordering::Relaxed), left_out);
    let expected = "shop (7): it has more than 10000 series of counters: values of further ones are left out";
    assert_eq!(*messages.lock().unwrap(), [expected]);
    drop(subscription);
}

#[test]
fn consumers_of_the_same_counters_share_a_decoder() {
    let target = Target::from_path("/nowhere/socket");
    let shared = SharedCounters::new(
        target,
        Arc::new(AtomicBool::new(true)),
        LostEvents::default(),
        ProcessLog::default(),
    );
    let subscribe = |list: &str| {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let request = CounterRequest::new(Selection::parse(list).unwrap(), Duration::from_secs(1));
        (shared.subscribe(request, Box::new(Notes(Arc::clone(&notes)))), notes)
    };
    let state = || shared.shared.state();
    let (one, of_one) = subscribe("System.Runtime");
    let (two, of_two) = subscribe("System.Runtime");
    let (other, of_other) = subscribe("System.Runtime[cpu-usage]");
    let recording = testdata::bytes("counters/net10-csv.nettrace.xz");
    let mut reader = LiveReader::new(Duration::from_secs(1));
    reader.feed(&recording);
    reader.end_of_input();
    shared.shared.deliver(&mut CounterEvents::new(&mut reader), true);
    assert_eq!(state().decoders.len(), 2, "one for each selection");

    let mut expected = Vec::new();
    let mut events = nettrace::Reader::new(&*recording).unwrap().in_time_order();
    Counters::new(Selection::parse("System.Runtime").unwrap())
        .read_all(&mut events, |sample| expected.push(note(&sample)))
        .unwrap();
    assert!(!expected.is_empty());
    assert_eq!(*of_one.lock().unwrap(), expected);
    assert_eq!(*of_two.lock().unwrap(), expected);
    assert_ne!(*of_other.lock().unwrap(), expected);

    drop(one);
    assert_eq!(state().decoders.len(), 2, "another consumer has it");
    drop(two);
    assert_eq!(state().decoders.len(), 1);
    drop(other);
    assert!(state().decoders.is_empty());
}

#[test]
fn a_session_is_kept_while_it_has_the_wanted_counters() {
    let plan = |subscribers: &[Subscriber]| Plan::of(subscribers).unwrap();
    let one = plan(&[subscriber("System.Runtime", 5, true)]);
    assert!(one.covers(&plan(&[subscriber("System.Runtime", 10, true)])));
    assert!(!one.covers(&plan(&[subscriber("System.Runtime", 1, true)])), "a shorter interval");
    assert!(!one.covers(&plan(&[subscriber("System.Runtime", 5, false)])), "quantiles");
    let both = plan(&[subscriber("System.Runtime", 5, true), subscriber("MyApp", 1, true)]);
    assert!(!one.covers(&both) && both.covers(&one));
    assert_eq!((both.interval, both.selections.len()), (Duration::from_secs(1), 2));
    assert!(Plan::of(&[]).is_none());
    assert!(!both.suits(&one), "values come five times too often");
}
