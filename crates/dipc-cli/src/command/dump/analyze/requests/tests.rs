//! Tests of the words for requests.

use super::*;

fn row(state: &'static str, method: Option<&str>, url: Option<&str>) -> Row {
    Row {
        address: 0x1000,
        state,
        subject: Subject::Request {
            method: method.map(ToOwned::to_owned),
            url: url.map(ToOwned::to_owned),
            version: None,
        },
        age: None,
        started: None,
        trace: None,
        thread: None,
        code: None,
        is_queued: false,
        chain: vec!["a socket".to_owned(), "Server.Read".to_owned()],
    }
}

fn list(incoming: Vec<Row>, outgoing: Vec<Row>) -> List {
    List {
        incoming,
        outgoing,
        commands: Vec::new(),
        unread_results: 0,
        idle_connections: 1,
        is_complete: true,
    }
}

#[test]
fn commands_have_a_line_with_their_database() {
    let subject = Subject::Command {
        server: Some("db,1433".to_owned()),
        database: Some("shop".to_owned()),
        text: Some("SELECT 1\n  FROM cart".to_owned()),
    };
    let command = Row { subject, code: Some("Cart.Find".to_owned()), ..row("executing", None, None) };
    let list = List { commands: vec![command], unread_results: 2, ..list(Vec::new(), Vec::new()) };
    let shown = text::table(&list, 10, None);
    assert!(
        shown.starts_with(
            "0 incoming requests, 0 outgoing requests, 1 idle connection, 1 database command (1 executing), \
             2 open results that nothing reads from\n"
        ),
        "{shown}"
    );
    let line = shown.lines().last().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(line, "unknown executing SELECT 1 FROM cart Cart.Find shop on db,1433");
}

#[test]
fn the_first_line_counts_the_states() {
    let rows = ["handler", "reading", "handler"].map(|state| row(state, None, None));
    assert_eq!(
        text::answer(&list(rows.into(), Vec::new())),
        "3 incoming requests (2 handler, 1 reading), 0 outgoing requests, 1 idle connection"
    );
}

#[test]
fn unknown_facts_are_said() {
    let shown = text::table(&list(vec![row("reading", None, None)], Vec::new()), 10, None);
    let line = shown.lines().last().unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>().join(" "),
        "unknown reading (not known) Server.Read"
    );
}

#[test]
fn an_age_of_a_core_dump_is_a_minimum() {
    let age = Age { time: Duration::from_secs(3), is_minimum: true };
    let rows = vec![Row { age: Some(age), thread: Some(7), ..row("handler", Some("GET"), Some("/a")) }];
    let shown = text::table(&list(rows, Vec::new()), 10, None);
    assert!(shown.contains("≥ 3.00 s  handler  GET /a         7"), "{shown}");
    assert!(shown.contains("A core dump lacks the time"), "{shown}");
}

#[test]
fn controls_in_a_url_do_not_reach_the_terminal() {
    let shown =
        text::table(&list(vec![row("handler", Some("GET"), Some("/\u{1b}[2J"))], Vec::new()), 10, None);
    assert!(shown.contains(r"GET /\u001b[2J"), "{shown:?}");
}

#[test]
fn rows_are_limited_and_counted() {
    let rows = (0..3).map(|_| row("handler", Some("GET"), Some("/a"))).collect();
    assert!(text::table(&list(rows, Vec::new()), 1, None).contains("(2 more)\n"));
}
