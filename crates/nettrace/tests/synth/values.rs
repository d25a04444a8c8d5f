//! Values of any type, and how they print.

use nettrace_synth::{Field, SystemTime, Type, Value};

/// A number generator that gives the same numbers for the same seed (splitmix64).
pub(crate) struct Numbers(pub u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("less than a usize")
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next().to_le_bytes()[0])
    }
}

/// A value of a type; `v6` selects the form of times.
pub(crate) fn value(ty: &Type, v6: bool, numbers: &mut Numbers) -> Value {
    let elements = |element: &Type, count: usize, numbers: &mut Numbers| -> Vec<Value> {
        (0..count).map(|_| value(element, v6, numbers)).collect()
    };
    match ty {
        Type::Boolean32 => Value::Boolean32(numbers.below(2) == 1),
        Type::Boolean8 => Value::Boolean8(numbers.below(2) == 1),
        Type::Utf16CodeUnit => Value::Utf16CodeUnit(u16::from_le_bytes(numbers.bytes())),
        Type::SByte => Value::SByte(i8::from_le_bytes(numbers.bytes())),
        Type::Byte => Value::Byte(numbers.bytes::<1>()[0]),
        Type::Int16 => Value::Int16(i16::from_le_bytes(numbers.bytes())),
        Type::UInt16 => Value::UInt16(u16::from_le_bytes(numbers.bytes())),
        Type::Int32 => Value::Int32(i32::from_le_bytes(numbers.bytes())),
        Type::UInt32 => Value::UInt32(u32::from_le_bytes(numbers.bytes())),
        Type::Int64 => Value::Int64(i64::from_le_bytes(numbers.bytes())),
        Type::UInt64 => Value::UInt64(numbers.next()),
        Type::Single => Value::Single(f32::from_le_bytes(numbers.bytes())),
        Type::Double => Value::Double(f64::from_le_bytes(numbers.bytes())),
        Type::Decimal => Value::Decimal(numbers.bytes()),
        Type::DateTime if v6 => Value::SystemTime(SystemTime {
            year: u16::from_le_bytes(numbers.bytes()),
            month: u16::from_le_bytes(numbers.bytes()),
            millisecond: u16::from_le_bytes(numbers.bytes()),
            ..SystemTime::default()
        }),
        Type::DateTime => Value::FileTime(i64::from_le_bytes(numbers.bytes())),
        Type::Guid => Value::Guid(numbers.bytes()),
        Type::String16 => {
            // Lone surrogates among them, and never a zero, which would end the string.
            Value::String16(
                (0..numbers.below(4)).map(|_| u16::from_le_bytes(numbers.bytes()).max(1)).collect(),
            )
        }
        Type::VarInt => Value::VarInt(i64::from_le_bytes(numbers.bytes()) >> numbers.below(64)),
        Type::VarUInt => Value::VarUInt(numbers.next() >> numbers.below(64)),
        Type::Utf8CodeUnit => Value::Utf8CodeUnit(numbers.bytes::<1>()[0]),
        Type::Object(fields) => {
            Value::Object(fields.iter().map(|field| value(&field.ty, v6, numbers)).collect())
        }
        Type::Array(element) => {
            let count = numbers.below(3);
            Value::Array(elements(element, count, numbers))
        }
        Type::FixedArray(element, count) => {
            Value::FixedArray(elements(element, usize::from(*count), numbers))
        }
        Type::RelLoc(element) => {
            let count = numbers.below(3);
            Value::RelLoc(elements(element, count, numbers))
        }
        Type::DataLoc(element) => {
            let count = numbers.below(3);
            Value::DataLoc(elements(element, count, numbers))
        }
        Type::Other(code) => unreachable!("no plan has the type {code}"),
    }
}

/// The expected `reading::value_text` of this value once read.
pub(crate) fn text(value: &Value, ty: &Type) -> String {
    match value {
        Value::Boolean32(v) | Value::Boolean8(v) => format!("bool {v}"),
        Value::Utf16CodeUnit(v) => format!("utf16 {v}"),
        Value::Utf8CodeUnit(v) => format!("utf8 {v}"),
        Value::SByte(v) => format!("i8 {v}"),
        Value::Byte(v) => format!("u8 {v}"),
        Value::Int16(v) => format!("i16 {v}"),
        Value::UInt16(v) => format!("u16 {v}"),
        Value::Int32(v) => format!("i32 {v}"),
        Value::UInt32(v) => format!("u32 {v}"),
        Value::Int64(v) | Value::VarInt(v) => format!("i64 {v}"),
        Value::UInt64(v) | Value::VarUInt(v) => format!("u64 {v}"),
        Value::Single(v) => format!("f32 {:08x}", v.to_bits()),
        Value::Double(v) => format!("f64 {:016x}", v.to_bits()),
        Value::Decimal(v) => format!("decimal {v:02x?}"),
        Value::FileTime(v) => format!("filetime {v}"),
        Value::SystemTime(v) => format!(
            "systemtime {} {} {} {} {} {} {} {}",
            v.year, v.month, v.day_of_week, v.day, v.hour, v.minute, v.second, v.millisecond
        ),
        Value::Guid(v) => format!("guid {v:02x?}"),
        Value::String16(v) => format!("string {v:?}"),
        Value::Array(v) | Value::FixedArray(v) | Value::RelLoc(v) | Value::DataLoc(v) => {
            let (Type::Array(element)
            | Type::FixedArray(element, _)
            | Type::RelLoc(element)
            | Type::DataLoc(element)) = ty
            else {
                unreachable!("{value:?} is of the type {ty:?}")
            };
            let elements: Vec<_> = v.iter().map(|v| text(v, element)).collect();
            format!("[{}]", elements.join(", "))
        }
        Value::Object(v) => {
            let Type::Object(fields) = ty else { unreachable!("{value:?} is of the type {ty:?}") };
            format!(
                "{{{}}}",
                texts(v, fields).map(|(name, text)| format!("{name}: {text}")).collect::<Vec<_>>().join(", ")
            )
        }
        Value::Raw(_) => unreachable!("no plan has raw values"),
    }
}

/// Names and printed values of these fields.
pub(crate) fn texts(values: &[Value], fields: &[Field]) -> impl Iterator<Item = (String, String)> {
    values.iter().zip(fields).map(|(value, field)| (field.name.clone(), text(value, &field.ty)))
}
