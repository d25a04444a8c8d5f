use super::{EventBlock, Headers, group};
use crate::Event;

fn first() -> Event {
    Event {
        metadata_id: 3,
        sequence: 1,
        thread: 200,
        capture_thread: 200,
        processor: 1,
        stack_id: 5,
        timestamp: 1_000,
        activity: [0xaa; 16],
        payload: vec![1, 2],
        ..Event::default()
    }
}

fn events_of(block: &EventBlock) -> Vec<u8> {
    block.content()[20..].to_vec()
}

#[test]
fn the_header_has_the_range_of_times() {
    let mut block = EventBlock::v4();
    block.event(&first()).event(&Event { timestamp: 1_500, sequence: 2, ..first() });
    let expected = [
        &[20, 0, 1, 0][..],
        &[0xe8, 3, 0, 0, 0, 0, 0, 0], // 1,000
        &[0xdc, 5, 0, 0, 0, 0, 0, 0], // 1,500
    ];
    assert_eq!(block.content()[..20], expected.concat());
    assert_eq!(EventBlock::v4().with_reserved(&[9, 9]).content()[..2], [22, 0]);
}

#[test]
fn compressed_headers_have_the_values_that_changed() {
    let mut block = EventBlock::v4();
    block.event(&first());
    // Everything as before but the time: the sequence number counts on by itself.
    block.event(&Event { sequence: 2, timestamp: 1_001, ..first() });
    // A lost event (4 after 2), sorted, another payload.
    block.event(&Event { sequence: 4, timestamp: 1_001, sorted: true, payload: vec![], ..first() });
    // An older event: the difference wraps, as it does in the runtime.
    block.event(&Event { sequence: 5, timestamp: 1_000, payload: vec![], ..first() });
    let expected = [
        &[0x01 | 0x02 | 0x04 | 0x08 | 0x10 | 0x80, 3, 0, 200, 1, 1, 200, 1, 5, 0xe8, 7][..],
        &[0xaa; 16],
        &[2, 1, 2],
        &[0, 1, 1, 2],
        &[0x02 | 0x40 | 0x80, 1, 200, 1, 1, 0, 0],
        &[0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
    ];
    assert_eq!(events_of(&block), expected.concat());
}

#[test]
fn v6_has_a_label_list_in_place_of_activities() {
    let mut block = EventBlock::v6().with_headers(Headers::CompressedInFull);
    block.event(&Event { label_list: 300, ..first() });
    let expected = [0xbf, 3, 0, 200, 1, 1, 200, 1, 5, 0xe8, 7, 0xac, 2, 2, 1, 2];
    assert_eq!(events_of(&block), expected);
}

#[test]
fn needed_groups_follow_the_version() {
    let event =
        Event { sequence: 1, metadata_id: 1, activity: [1; 16], related: [2; 16], ..Event::default() };
    assert_eq!(EventBlock::v4().needed_groups(&event), group::METADATA_ID | group::ACTIVITY | group::RELATED);
    assert_eq!(EventBlock::v6().needed_groups(&event), group::METADATA_ID);
    let labelled = Event { label_list: 1, ..event };
    assert_eq!(EventBlock::v6().needed_groups(&labelled), group::METADATA_ID | group::LABEL_LIST);
}

#[test]
fn uncompressed_events_of_v4_are_aligned() {
    let mut block = EventBlock::v4().with_headers(Headers::Uncompressed);
    block.event(&first()).event(&Event { sorted: true, ..Event::default() });
    let expected = [
        &[80, 0, 0, 0, 3, 0, 0, 0x80, 1, 0, 0, 0][..],
        &[200, 0, 0, 0, 0, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 5, 0, 0, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0],
        &[0xaa; 16],
        &[0; 16],
        &[2, 0, 0, 0, 1, 2, 0, 0],
        &[76, 0, 0, 0],
        &[0; 76],
    ];
    assert_eq!(events_of(&block), expected.concat());
    assert_eq!(block.content()[2..4], [0, 0], "the flag is clear: headers are not compressed");
}

#[test]
fn uncompressed_events_of_v6_are_not_aligned() {
    let mut block = EventBlock::v6().with_headers(Headers::Uncompressed);
    block.event(&Event { label_list: 7, ..first() });
    let expected = [
        &[50, 0, 0, 0, 3, 0, 0, 0x80, 1, 0, 0, 0][..],
        &[200, 0, 0, 0, 0, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 5, 0, 0, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0],
        &[7, 0, 0, 0, 2, 0, 0, 0, 1, 2],
    ];
    assert_eq!(events_of(&block), expected.concat());
}
