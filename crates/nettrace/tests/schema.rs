//! Fields that a schema describes instead of the recording.

use nettrace::schema::{Count, Field, FieldType, NamedValue, ValueNames, ValueNamesKind};
use nettrace::{FieldError, Fields, Value};

static KINDS: ValueNames = ValueNames::new("KindMap", ValueNamesKind::Bits, &[(1, "Small"), (2, "Large")]);

fn all(schema: &'static [Field], payload: &[u8], pointer_size: u8) -> Vec<String> {
    Fields::with_schema(schema, payload, pointer_size)
        .map(|field| match field {
            Ok((name, value)) => format!("{name}={}", text(value)),
            Err(error) => error.to_string(),
        })
        .collect()
}

fn text(value: Value<'_>) -> String {
    match value {
        Value::Array(array) => {
            assert_eq!(array.len(), array.count());
            format!("[{}]", array.map(text).collect::<Vec<_>>().join(","))
        }
        Value::Object(fields) => {
            let texts = fields.map(|field| field.map(|(name, value)| format!("{name}={}", text(value))));
            format!("{{{}}}", texts.collect::<Result<Vec<_>, _>>().unwrap().join(","))
        }
        Value::Named(named) => named.to_string(),
        Value::Utf8(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        value => format!("{value:?}"),
    }
}

#[test]
fn every_type_of_a_schema_has_its_value() {
    static ALL: &[Field] = &[
        Field::new("yes", FieldType::BOOL32),
        Field::new("pad", FieldType::Pad16),
        Field::new("word", FieldType::PadWord),
        Field::new("address", FieldType::Address),
        Field::new("kind", FieldType::Named8(&KINDS)),
        Field::new("text", FieldType::Utf8),
        Field::new("hidden", FieldType::Hidden(&FieldType::U16)),
        Field::new("counted", FieldType::CountedUtf8),
        Field::new("data", FieldType::Bytes(Count::Fixed(2))),
    ];
    let wide = [
        &[1, 0, 0, 0, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 8, 0, 0, 0, 0, 0, 0, 1, 7][..],
        b"ab\0",
        &[0xee, 0xee, 1, 0, b'c', 5, 6],
    ]
    .concat();
    let expected = [
        "yes=Bool(true)",
        "address=U64",
        "kind=Small|Large|0x4",
        "text=ab",
        "counted=c",
        "data=Bytes([5, 6])",
    ];
    let expected: Vec<_> =
        expected.iter().map(|text| text.replace("U64", "Address(72057594037927944)")).collect();
    assert_eq!(all(ALL, &wide, 8), expected);
    let narrow = [&wide[..6], &wide[10..14], &wide[18..]].concat();
    let expected: Vec<_> = expected.iter().map(|text| text.replace("72057594037927944", "8")).collect();
    assert_eq!(all(ALL, &narrow, 4), expected);
    assert_eq!(NamedValue::new(4, &KINDS).unnamed_bits(), 4);
}

#[test]
fn each_list_has_its_own_counter() {
    static INNER: &[Field] = &[
        Field::counter("n", FieldType::U8),
        Field::new("values", FieldType::Array(&FieldType::U8, Count::Counted)),
    ];
    static OUTER: &[Field] = &[
        Field::counter("count", FieldType::U16),
        Field::new("rows", FieldType::Array(&FieldType::Object(INNER), Count::Counted)),
        Field::new("pair", FieldType::Array(&FieldType::U16, Count::Counted)),
    ];
    let payload = [2, 0, 1, 9, 3, 7, 8, 9, 1, 0, 2, 0, 0xaa];
    let mut fields = Fields::with_schema(OUTER, &payload, 8);
    assert_eq!(
        all(OUTER, &payload, 8),
        [
            "count=U16(2)",
            "rows=[{n=U8(1),values=[U8(9)]},{n=U8(3),values=[U8(7),U8(8),U8(9)]}]",
            "pair=[U16(1),U16(2)]"
        ]
    );
    assert_eq!(fields.by_ref().count(), 3);
    assert_eq!(fields.rest(), [0xaa]);
    assert!(!fields.is_recorded());
}

#[test]
fn a_cut_payload_ends_the_fields_with_an_error() {
    static LIST: &[Field] = &[
        Field::new("pad", FieldType::Pad16),
        Field::new("a", FieldType::U32),
        Field::new("text", FieldType::CountedUtf8),
        Field::new("after", FieldType::U8),
    ];
    let mut fields = Fields::with_schema(LIST, &[0, 0, 1, 0, 0, 0, 9, 0, 1], 8);
    assert_eq!(fields.next(), Some(Ok(("a", Value::U32(1)))));
    assert_eq!(fields.next(), Some(Err(FieldError::TooShort { field: 2, fields: 4 })));
    assert_eq!(fields.next(), None);
    assert_eq!(fields.rest(), [9, 0, 1], "a field that could not be read leaves its bytes");
}

#[test]
fn four_billion_elements_that_take_no_bytes_are_refused_at_the_first() {
    static NOTHING: FieldType = FieldType::Object(&[Field::new("pad", FieldType::PadWord)]);
    static LIST: &[Field] = &[
        Field::counter("count", FieldType::U32),
        Field::new("nothings", FieldType::Array(&FieldType::Object(&[]), Count::Counted)),
    ];
    static NARROW: &[Field] = &[
        Field::counter("count", FieldType::U32),
        Field::new("nothings", FieldType::Array(&NOTHING, Count::Counted)),
    ];
    static PADS: &[Field] = &[Field::new("pads", FieldType::Array(&FieldType::Pad16, Count::Fixed(1)))];
    static MANY: &[Field] = &[
        Field::counter("count", FieldType::U32),
        Field::new("texts", FieldType::Array(&FieldType::Utf8, Count::Counted)),
    ];
    let refused = ["count=U32(4294967295)", "field 1: its elements take no bytes"];
    assert_eq!(all(LIST, &[0xff; 4], 8), refused);
    assert_eq!(all(NARROW, &[0xff; 4], 4), refused);
    assert_eq!(all(PADS, &[0xff; 4], 4), ["field 0: its elements have no value"]);
    assert_eq!(all(MANY, &[0xff, 0xff, 0xff, 0xff, 0, 0], 8)[1], "the payload ends inside field 1 of 2");
}
