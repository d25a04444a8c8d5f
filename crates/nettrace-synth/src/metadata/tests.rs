use super::{Field, Metadata, Type};

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn point() -> Metadata {
    Metadata {
        id: 2,
        provider: "P".into(),
        event_id: 9,
        name: "E".into(),
        keywords: 0x10,
        version: 3,
        level: 4,
        fields: vec![
            Field::new("x", Type::Int32),
            Field::new("o", Type::Object(vec![Field::new("s", Type::String16)])),
        ],
        ..Metadata::default()
    }
}

fn definition() -> Vec<u8> {
    [&[9, 0, 0, 0][..], &utf16("E"), &[0x10, 0, 0, 0, 0, 0, 0, 0], &[3, 0, 0, 0, 4, 0, 0, 0]].concat()
}

fn fields_v1() -> Vec<u8> {
    [
        &[2, 0, 0, 0, 9, 0, 0, 0][..],
        &utf16("x"),
        &[1, 0, 0, 0, 1, 0, 0, 0, 18, 0, 0, 0],
        &utf16("s"),
        &utf16("o"),
    ]
    .concat()
}

#[test]
fn early_metadata_has_no_id() {
    let body = [definition(), fields_v1()].concat();
    let length = u8::try_from(body.len()).unwrap();
    let tail = [&[9, 0, 0, 0, 3, 0, 0, 0, length, 0, 0, 0][..], &body].concat();
    assert_eq!(point().payload_early(false), [utf16("P"), tail.clone()].concat());
    let named = Metadata { provider_guid: Some([7; 16]), ..point() };
    assert_eq!(named.payload_early(true), [vec![7; 16], tail].concat());
}

#[test]
fn early_metadata_of_the_runtime_has_no_definition() {
    let bare = Metadata { name: String::new(), fields: vec![], ..point() };
    assert_eq!(bare.payload_early(false), [&utf16("P")[..], &[9, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]].concat());
}

#[test]
fn v3_metadata_begins_with_its_id() {
    let expected = [&[2, 0, 0, 0][..], &utf16("P"), &definition(), &fields_v1()].concat();
    assert_eq!(point().payload_v3(), expected);
    assert_eq!(point().payload_v5(), expected, "without an opcode and an array there are no tags");
}

#[test]
fn v5_metadata_ends_with_tags() {
    let mut metadata = Metadata { opcode: Some(11), ..point() };
    let expected = [metadata.payload_v3(), vec![1, 0, 0, 0, 1, 11]].concat();
    assert_eq!(metadata.payload_v5(), expected);

    metadata.fields = vec![
        Field::new("x", Type::Int32),
        Field::new("a", Type::Array(Box::new(Type::Object(vec![Field::new("s", Type::String16)])))),
    ];
    let expected = [
        &[2, 0, 0, 0][..],
        &utf16("P"),
        &definition(),
        &[0, 0, 0, 0], // no fields of V1
        &[1, 0, 0, 0, 1, 11],
        &[48, 0, 0, 0, 2, 2, 0, 0, 0],
        &[12, 0, 0, 0],
        &utf16("x"),
        &[9, 0, 0, 0],
        &[32, 0, 0, 0],
        &utf16("a"),
        &[19, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
        &[12, 0, 0, 0],
        &utf16("s"),
        &[18, 0, 0, 0],
    ]
    .concat();
    assert_eq!(metadata.payload_v5(), expected);
}

#[test]
fn v6_row_has_every_kind_of_type() {
    let types = [
        (Type::Array(Box::new(Type::VarInt)), &[19, 20][..]),
        (Type::FixedArray(Box::new(Type::Utf8CodeUnit), 0x0102), &[22, 23, 2, 1]),
        (Type::RelLoc(Box::new(Type::Byte)), &[24, 6]),
        (Type::DataLoc(Box::new(Type::Boolean8)), &[25, 26]),
        (Type::Object(vec![Field::new("i", Type::VarUInt)]), &[1, 1, 0, 3, 0, 1, b'i', 21]),
        (Type::Other(99), &[99]),
    ];
    for (ty, expected) in types {
        let row = Metadata { id: 300, fields: vec![Field::new("f", ty)], ..Metadata::default() }.row_v6();
        let field_size = u8::try_from(expected.len() + 2).unwrap();
        let body = [&[0xac, 2, 0, 0, 0, 1, 0, field_size, 0, 1, b'f'][..], expected, &[0, 0]].concat();
        let size = u8::try_from(body.len()).unwrap();
        assert_eq!(row, [&[size, 0][..], &body].concat());
    }
}

#[test]
fn v6_optional_part_has_the_present_options() {
    let metadata = Metadata {
        keywords: 1,
        level: 5,
        version: 2,
        opcode: Some(0),
        template: Some("t".into()),
        description: Some("d".into()),
        key_values: vec![("k".into(), "v".into())],
        provider_guid: Some([8; 16]),
        ..Metadata::default()
    };
    let expected = [
        &[1, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 4, 1, b't', 5, 1, b'd', 6, 1, b'k', 1, b'v', 7][..],
        &[8; 16],
        &[8, 5, 9, 2],
    ]
    .concat();
    assert_eq!(metadata.optional_v6(), expected);
    assert!(Metadata::default().optional_v6().is_empty());
    assert_eq!(
        Metadata::default().row_v6_with(&[200], &[1, 2, 3]),
        [12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 200, 1, 2, 3],
        "an unknown kind, and bytes behind the row's known part"
    );
}
