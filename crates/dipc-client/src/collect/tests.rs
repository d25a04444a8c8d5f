use super::*;

fn collect(rundown: Rundown, stackwalk: bool) -> Collect {
    Collect { rundown, stackwalk, ..Collect::new([]) }
}

#[test]
fn what_every_form_can_say_is_said_in_every_form() {
    for rundown in [Rundown::Default, Rundown::Keyword(0x8002_0139)] {
        let collect = collect(rundown, true);
        assert_eq!(collect.wishes(), []);
        assert_eq!(collect.form_4().rundown_keyword, 0x8002_0139);
        assert!(collect.form_4().request_stackwalk);
        assert!(collect.form_3().request_rundown);
        assert!(collect.form_2().request_rundown);
        assert_eq!(collect.form_1().buffer_mb, 256);
    }
}

#[test]
fn what_an_older_form_cannot_say_is_a_wish() {
    assert_eq!(collect(Rundown::Keyword(1), true).wishes(), [(Wish::RundownKeyword, 4)]);
    assert_eq!(collect(Rundown::Default, false).wishes(), [(Wish::NoStacks, 3)]);
    for rundown in [Rundown::Off, Rundown::Keyword(0)] {
        let without_rundown = collect(rundown, true);
        assert_eq!(without_rundown.wishes(), [(Wish::NoRundown, 2)]);
        assert!(!without_rundown.form_2().request_rundown);
    }
    let block = Collect { buffer_mode: BufferMode::BLOCK, ..collect(Rundown::Off, false) };
    assert_eq!(block.wishes(), [(Wish::BlockWhenFull, 6), (Wish::NoStacks, 3), (Wish::NoRundown, 2)]);
    // No id that is wanted lets nothing through.
    for filter in [EventFilter { enable: true, ids: vec![] }, EventFilter { enable: false, ids: vec![1] }] {
        let mut filtered = Collect::new([ProviderConfig::default()]);
        filtered.providers[0].filter = filter;
        assert_eq!(filtered.wishes(), [(Wish::EventFilter, 5)]);
    }
}
