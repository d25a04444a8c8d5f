use super::*;
use dipc_wire::ProviderConfig;

fn config(rundown: Rundown, stackwalk: bool) -> SessionConfig {
    SessionConfig::new::<ProviderConfig>([]).with_rundown(rundown).with_stackwalk(stackwalk)
}

#[test]
fn every_form_expresses_the_common_options() {
    for rundown in [Rundown::Default, Rundown::Keyword(Keywords(0x8002_0139))] {
        let config = config(rundown, true);
        assert_eq!(config.optional_features(), []);
        assert_eq!(config.form_4().rundown_keyword, Keywords(0x8002_0139));
        assert!(config.form_4().request_stackwalk);
        assert!(config.form_3().request_rundown);
        assert!(config.form_2().request_rundown);
        assert_eq!(config.form_1().buffer_mb, 256);
    }
}

#[test]
fn options_missing_in_older_forms_are_optional_features() {
    assert_eq!(
        config(Rundown::Keyword(Keywords(1)), true).optional_features(),
        [(OptionalFeature::RundownKeyword, 4)]
    );
    assert_eq!(config(Rundown::Default, false).optional_features(), [(OptionalFeature::NoStacks, 3)]);
    for rundown in [Rundown::Off, Rundown::Keyword(Keywords(0))] {
        let without_rundown = config(rundown, true);
        assert_eq!(without_rundown.optional_features(), [(OptionalFeature::NoRundown, 2)]);
        assert!(!without_rundown.form_2().request_rundown);
    }
    let block = config(Rundown::Off, false).with_buffer_mode(BufferMode::BLOCK);
    assert_eq!(
        block.optional_features(),
        [
            (OptionalFeature::BlockWhenFull, 6),
            (OptionalFeature::NoStacks, 3),
            (OptionalFeature::NoRundown, 2)
        ]
    );
    // An empty list of enabled ids passes no events, so it is a filter, too.
    for filter in [EventFilter { enable: true, ids: vec![] }, EventFilter { enable: false, ids: vec![1] }] {
        let mut filtered = SessionConfig::new([ProviderConfig::default()]);
        filtered.providers[0].filter = filter;
        assert_eq!(filtered.optional_features(), [(OptionalFeature::EventFilter, 5)]);
    }
}

#[test]
fn meters_next_to_event_counters_need_a_session_before() {
    let provider = |name: &str, arguments: &str| ProviderConfig {
        name: name.into(),
        arguments: arguments.into(),
        ..ProviderConfig::default()
    };
    let counters = || provider("System.Runtime", "EventCounterIntervalSec=0.5");
    let meters = || provider("System.Diagnostics.Metrics", "SessionId=SHARED;Metrics=System.Runtime");
    let before = |providers: Vec<ProviderConfig>| SessionConfig::new(providers).meters_alone();
    for alone in [vec![counters()], vec![meters()], vec![meters(), provider("System.Runtime", "")]] {
        assert_eq!(before(alone), None);
    }
    for both in [vec![counters(), meters()], vec![meters(), counters()]] {
        let before = before(both).unwrap();
        // Without a client name nothing is to be changed.
        assert_eq!(before.providers, SessionConfig::new([meters()]).providers);
        assert_eq!((before.rundown, before.meters_alone()), (Rundown::Off, None));
    }
}

/// A client with two sessions ends the Meters of all others when either session stops.
#[test]
fn the_session_before_is_another_client() {
    let rows = [
        ("SessionId=SHARED;ClientId=C;Metrics=A", "SessionId=SHARED;ClientId=", "-C;Metrics=A"),
        ("ClientId=C", "ClientId=", "-C"),
        ("MyClientId=A;ClientId=\"C;D\"", "MyClientId=A;ClientId=\"", "-C;D\""),
    ];
    for (arguments, before, after) in rows {
        let [one, other] = [(); 2].map(|()| with_other_client(arguments));
        assert!(one.starts_with(before) && one.ends_with(after), "{one}");
        assert!(one.len() > arguments.len() && one != other, "{one} {other}");
    }
    assert_eq!(with_other_client("MyClientId=A"), "MyClientId=A");
}
