use super::*;

fn one(text: &str) -> ProviderConfig {
    let mut list = Providers::parse(text).unwrap().into_vec();
    assert_eq!(list.len(), 1, "{text}");
    list.remove(0)
}

fn config(name: &str, keywords: u64, level: u32, arguments: &str) -> ProviderConfig {
    let (keywords, level) = (Keywords(keywords), Level(level));
    ProviderConfig { keywords, level, name: name.to_owned(), arguments: arguments.to_owned() }
}

#[test]
fn a_name_alone_is_read_as_dotnet_trace_reads_it() {
    assert_eq!(one("Workload-Typed"), config("Workload-Typed", 0, 4, ""));
    assert_eq!(one("Workload-Typed::"), config("Workload-Typed", 0, 4, ""));
    assert_eq!(one("Workload-Typed:::"), config("Workload-Typed", 0, 4, ""));
}

#[test]
fn names_with_separators_stand_in_quotes() {
    let list = Providers::parse(r#""Shop, Berlin; a:b=c":0x1:5,B:2"#).unwrap().into_vec();
    assert_eq!(list, [config("Shop, Berlin; a:b=c", 1, 5, ""), config("B", 2, 4, "")]);
    for (text, error) in [
        (r#""":1"#, "a provider name is missing"),
        (r#""A,B:1"#, "a quote is opened here and never closed"),
        (r#""A"b"c":1"#, "a provider name with '\"' needs quotes around it"),
        ("A;B:1", "a provider name with ';' needs quotes around it"),
    ] {
        let found = Providers::parse(text).unwrap_err().to_string();
        assert!(found.contains(error), "{text}: {found}");
    }
}

#[test]
fn keywords_are_hexadecimal_with_or_without_prefix() {
    for (text, keywords) in [
        ("0x100003801D", 0x10_0003_801D),
        ("100003801d", 0x10_0003_801D),
        ("0XFFFFFFFFFFFFFFFF", u64::MAX),
        ("0", 0),
    ] {
        assert_eq!(one(&format!("P:{text}:4")), config("P", keywords, 4, ""));
    }
}

#[test]
fn levels_are_numbers_or_names() {
    for (text, level) in [
        ("0", 0),
        ("4", 4),
        ("9", 5),
        ("logalways", 0),
        ("CRITICAL", 1),
        ("Error", 2),
        ("warning", 3),
        ("Informational", 4),
        ("Verbose", 5),
    ] {
        assert_eq!(one(&format!("P:1:{text}")).level, Level(level), "{text}");
    }
}

#[test]
fn the_captured_request_with_arguments() {
    assert_eq!(one("Workload-Typed:0x10:4:k=v"), config("Workload-Typed", 0x10, 4, "k=v"));
}

#[test]
fn quotes_protect_separators() {
    let text = r#"A:1:1:FilterSpec="A/E:-P=P;Q=Q.A.B;",B:2:Warning:x=1;y="a,b:c""#;
    let list = Providers::parse(text).unwrap().into_vec();
    assert_eq!(
        list,
        [config("A", 1, 1, r#"FilterSpec="A/E:-P=P;Q=Q.A.B;""#), config("B", 2, 3, "x=1;y=a,b:c")]
    );
}

#[test]
fn quotes_escaped_for_a_shell_are_quotes() {
    let text = r#"A:0x1:1:FilterSpec=\"A/E:-P=P;Q=Q.A.B;\""#;
    assert_eq!(one(text).arguments, r#"FilterSpec="A/E:-P=P;Q=Q.A.B;""#);
}

#[test]
fn escaped_line_ends_become_line_ends() {
    assert_eq!(one(r"A:1:1:Specs=x\r\ny\d").arguments, "Specs=x\r\ny\\d");
}

#[test]
fn a_value_may_hold_colons_and_equals() {
    assert_eq!(one("A:1:1:u=http://h:80/").arguments, "u=http://h:80/");
    assert_eq!(one("A:1:1:k=a=b").arguments, r#"k="a=b""#);
    assert_eq!(one("A:1:1:EventCounterIntervalSec=1;").arguments, "EventCounterIntervalSec=1");
}

#[test]
fn a_provider_named_twice_is_joined() {
    let list = Providers::parse("P:1:2,q:8:0,p:4:4:k=v,Q:1:5").unwrap().into_vec();
    assert_eq!(list, [config("P", 5, 4, "k=v"), config("q", 9, 0, "")]);
}

#[test]
fn errors_name_the_fault_and_its_position() {
    let cases = [
        ("", 0, "a provider name is missing"),
        ("A,,B", 2, "a provider name is missing"),
        (":1", 0, "a provider name is missing"),
        ("A:zz", 2, "keywords 'zz' are not"),
        ("A:+1", 2, "keywords '+1' are not"),
        ("A:0x", 2, "keywords '0x' are not"),
        ("A:10000000000000000", 2, "keywords '10000000000000000' are not"),
        ("A:1:loud", 4, "level 'loud' is neither"),
        ("A:1:-1", 4, "level '-1' is neither"),
        ("A:1:1:abc", 6, "argument 'abc' has no '='"),
        ("A:1:1:k=1;=2", 10, "an argument's key is missing"),
        ("A:1:1:k=1;k=2", 10, "argument 'k' is given twice"),
        ("A:1:1:k=\"x,B", 8, "a quote is opened here"),
        ("A:1:1:k=a,b=c", 11, "a provider name with '=' needs quotes around it"),
        ("A:1:1:k=1,B,a:1:1:k=2", 12, "provider 'a' is named twice"),
    ];
    for (text, position, message) in cases {
        let error = Providers::parse(text).unwrap_err();
        assert_eq!(error.position(), position, "{text}: {error}");
        assert!(error.to_string().contains(message), "{text}: {error}");
    }
}

#[test]
fn places_count_characters_not_bytes() {
    let error = Providers::parse("Größe:zz").unwrap_err();
    assert!(error.to_string().starts_with("at character 7: "), "{error}");
}

#[test]
fn no_text_panics() {
    let alphabet = ['A', ':', ',', ';', '=', '"', '\\', '0', 'ü', ' '];
    for number in 0..alphabet.len().pow(5) {
        let text: String =
            (0..5).map(|place| alphabet[number / alphabet.len().pow(place) % alphabet.len()]).collect();
        if let Err(error) = Providers::parse(&text) {
            assert!(text.is_char_boundary(error.position()), "{text}: {error}");
        }
    }
}
