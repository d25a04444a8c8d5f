//! Values of the columns of a row group before it is written.

use bytes::Bytes;
use hashbrown::HashMap;
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};

use crate::id::Id;
use crate::schema::ColumnType;

/// The values of a column, and their rows.
#[derive(Debug)]
pub(crate) struct Column {
    values: Values,
    /// The rows of the values; `None` while every row up to the last has one.
    rows: Option<Vec<u32>>,
}

#[derive(Debug)]
enum Values {
    Long(Vec<i64>),
    Int(Vec<i32>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    Text(Texts),
    /// Concatenated bytes, and the end of each value.
    Bytes(Vec<u8>, Vec<u32>),
    Id(Vec<u8>),
    /// Concatenated identities, and the end of each list.
    IdList(Vec<u8>, Vec<u32>),
}

/// Texts, each kept once.
#[derive(Debug, Default)]
struct Texts {
    values: Vec<u32>,
    known: Vec<ByteArray>,
    numbers: HashMap<Bytes, u32>,
}

impl Texts {
    /// Adds a string. Returns the number of bytes that this takes.
    fn push(&mut self, text: &str) -> usize {
        // Most columns repeat the same text for many rows.
        if let Some(last) = self.values.last()
            && self.known.get(*last as usize).is_some_and(|text_before| text_before.data() == text.as_bytes())
        {
            self.values.push(*last);
            return 4;
        }
        if let Some(number) = self.numbers.get(text.as_bytes()) {
            self.values.push(*number);
            return 4;
        }
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        self.known.push(bytes.clone().into());
        self.numbers.insert(bytes, number);
        self.values.push(number);
        text.len() + 120
    }
}

/// Rows that are passed to the Parquet writer at once.
const BATCH: usize = 8192;

/// Bytes of long values that are passed to it at once: it ends a page only between batches.
const LONG_BATCH: usize = 256 << 10;

/// Maximum size of a string or a value, in bytes.
const MAX_LENGTH: usize = 1 << 20;

/// Buffers for the rows of a row group in their order, reused for one column after the other.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The index of the value by row; `u32::MAX` for none.
    places: Vec<u32>,
    levels: Vec<i16>,
}

impl Column {
    pub(crate) fn new(kind: ColumnType) -> Self {
        let values = match kind {
            ColumnType::Long => Values::Long(Vec::new()),
            ColumnType::Int => Values::Int(Vec::new()),
            ColumnType::Double => Values::Double(Vec::new()),
            ColumnType::Bool => Values::Bool(Vec::new()),
            ColumnType::Text => Values::Text(Texts::default()),
            ColumnType::LongText | ColumnType::Bytes => Values::Bytes(Vec::new(), Vec::new()),
            ColumnType::Id => Values::Id(Vec::new()),
            ColumnType::IdList => Values::IdList(Vec::new(), Vec::new()),
        };
        Self { values, rows: None }
    }

    fn len(&self) -> usize {
        match &self.values {
            Values::Long(values) => values.len(),
            Values::Int(values) => values.len(),
            Values::Double(values) => values.len(),
            Values::Bool(values) => values.len(),
            Values::Text(texts) => texts.values.len(),
            Values::Bytes(_, ends) | Values::IdList(_, ends) => ends.len(),
            Values::Id(bytes) => bytes.len() / 16,
        }
    }

    /// Records that a row has the next value. Returns the bytes that this takes.
    #[inline]
    fn note(&mut self, row: u32) -> usize {
        if let Some(rows) = &mut self.rows {
            rows.push(row);
            return 4;
        }
        let count = self.len();
        if count == row as usize {
            return 0;
        }
        let mut rows: Vec<u32> = (0..row).take(count).collect();
        rows.push(row);
        let bytes = rows.len() * 4;
        self.rows = Some(rows);
        bytes
    }

    #[inline]
    pub(crate) fn push_long(&mut self, row: u32, value: i64) -> usize {
        let noted = self.note(row);
        if let Values::Long(values) = &mut self.values {
            values.push(value);
        }
        noted + 8
    }

    #[inline]
    pub(crate) fn push_int(&mut self, row: u32, value: i32) -> usize {
        let noted = self.note(row);
        if let Values::Int(values) = &mut self.values {
            values.push(value);
        }
        noted + 4
    }

    pub(crate) fn push_double(&mut self, row: u32, value: f64) -> usize {
        let noted = self.note(row);
        if let Values::Double(values) = &mut self.values {
            values.push(value);
        }
        noted + 8
    }

    pub(crate) fn push_bool(&mut self, row: u32, value: bool) -> usize {
        let noted = self.note(row);
        if let Values::Bool(values) = &mut self.values {
            values.push(value);
        }
        noted + 1
    }

    /// Adds a string; very long strings are cut.
    #[inline]
    pub(crate) fn push_text(&mut self, row: u32, text: &str) -> usize {
        let noted = self.note(row);
        let text = cut(text);
        noted
            + match &mut self.values {
                Values::Text(texts) => texts.push(text),
                Values::Bytes(bytes, ends) => push_bytes(bytes, ends, text.as_bytes()),
                _ => 0,
            }
    }

    /// Adds bytes; a very long value is cut.
    pub(crate) fn push_bytes(&mut self, row: u32, value: &[u8]) -> usize {
        let noted = self.note(row);
        if let Values::Bytes(bytes, ends) = &mut self.values {
            return noted + push_bytes(bytes, ends, value.get(..MAX_LENGTH).unwrap_or(value));
        }
        noted
    }

    #[inline]
    pub(crate) fn push_id(&mut self, row: u32, id: Id) -> usize {
        let noted = self.note(row);
        if let Values::Id(bytes) = &mut self.values {
            bytes.extend_from_slice(&id.0);
        }
        noted + 16
    }

    pub(crate) fn push_ids(&mut self, row: u32, ids: impl Iterator<Item = Id>) -> usize {
        let noted = self.note(row);
        if let Values::IdList(bytes, ends) = &mut self.values {
            let before = bytes.len();
            ids.for_each(|id| bytes.extend_from_slice(&id.0));
            ends.push(u32::try_from(bytes.len() / 16).unwrap_or(u32::MAX));
            return noted + bytes.len() - before + 4;
        }
        noted
    }

    /// Writes the values in the given order of rows, and drops them.
    pub(crate) fn write(
        &mut self,
        order: &[u32],
        scratch: &mut Scratch,
        writer: &mut ColumnWriter<'_>,
    ) -> Result<()> {
        let count = self.len();
        if count == 0 {
            return write_nulls(order.len(), scratch, writer);
        }
        let rows = self.rows.take();
        let is_full = rows.is_none() && count == order.len();
        if !is_full {
            scratch.places.clear();
            scratch.places.resize(order.len(), u32::MAX);
            for place in 0..count {
                let row = rows.as_ref().map_or(Some(place), |rows| rows.get(place).map(|row| *row as usize));
                if let Some(slot) = row.and_then(|row| scratch.places.get_mut(row)) {
                    *slot = u32::try_from(place).unwrap_or(u32::MAX);
                }
            }
        }
        let places = (!is_full).then_some(&*scratch.places);
        let levels = &mut scratch.levels;
        match (&mut self.values, writer) {
            (Values::Long(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                let values = std::mem::take(values);
                write_each(order, places, levels, writer, |place| values[place])
            }
            (Values::Int(values), ColumnWriter::Int32ColumnWriter(writer)) => {
                let values = std::mem::take(values);
                write_each(order, places, levels, writer, |place| values[place])
            }
            (Values::Double(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                let values = std::mem::take(values);
                write_each(order, places, levels, writer, |place| values[place])
            }
            (Values::Bool(values), ColumnWriter::BoolColumnWriter(writer)) => {
                let values = std::mem::take(values);
                write_each(order, places, levels, writer, |place| values[place])
            }
            (Values::Text(texts), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let Texts { values, known, .. } = std::mem::take(texts);
                let text = |place: usize| known[values[place] as usize].clone();
                write_each(order, places, levels, writer, text)
            }
            (Values::Bytes(bytes, ends), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let (bytes, ends) = (Bytes::from(std::mem::take(bytes)), std::mem::take(ends));
                let value = |place: usize| ByteArray::from(bytes.slice(range(&ends, place)));
                let (mut rest, mut count, mut size) = (order, 0, 0);
                for row in order {
                    let place = places.map_or(Some(*row as usize), |places| place_of(places, *row));
                    size += place.map_or(0, |place| range(&ends, place).len());
                    count += 1;
                    if size >= LONG_BATCH {
                        let (rows, behind) = rest.split_at(count);
                        write_each(rows, places, levels, writer, value)?;
                        (rest, count, size) = (behind, 0, 0);
                    }
                }
                write_each(rest, places, levels, writer, value)
            }
            (Values::Id(bytes), ColumnWriter::FixedLenByteArrayColumnWriter(writer)) => {
                let bytes = Bytes::from(std::mem::take(bytes));
                let value = |place: usize| id(&bytes, place);
                write_each(order, places, levels, writer, value)
            }
            (Values::IdList(bytes, ends), ColumnWriter::FixedLenByteArrayColumnWriter(writer)) => {
                let (bytes, ends) = (Bytes::from(std::mem::take(bytes)), std::mem::take(ends));
                let (mut values, mut repeated) = (Vec::new(), Vec::new());
                for rows in order.chunks(BATCH / 64) {
                    values.clear();
                    repeated.clear();
                    levels.clear();
                    for row in rows {
                        let place = places.map_or(Some(*row as usize), |places| place_of(places, *row));
                        let ids = place.map_or(0..0, |place| range(&ends, place));
                        // 0 is an absent list, 1 an empty one, 2 one with elements.
                        if ids.is_empty() {
                            levels.push(i16::from(place.is_some()));
                            repeated.push(0);
                        }
                        for (index, at) in ids.enumerate() {
                            values.push(id(&bytes, at));
                            levels.push(2);
                            repeated.push(i16::from(index > 0));
                        }
                    }
                    writer.write_batch(&values, Some(levels), Some(&repeated))?;
                }
                Ok(())
            }
            _ => Err(ParquetError::General("a column has another type than its table says".into())),
        }
    }
}

/// Returns the beginning of a very long string, and shorter strings whole.
#[inline]
fn cut(text: &str) -> &str {
    // A character has at most four bytes.
    let mut ends = (MAX_LENGTH - 3..=MAX_LENGTH).rev();
    if text.len() <= MAX_LENGTH { text } else { ends.find_map(|end| text.get(..end)).unwrap_or_default() }
}

fn push_bytes(bytes: &mut Vec<u8>, ends: &mut Vec<u32>, value: &[u8]) -> usize {
    bytes.extend_from_slice(value);
    ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    value.len() + 4
}

/// The range of a value, given the ends of all values.
fn range(ends: &[u32], place: usize) -> std::ops::Range<usize> {
    let start = place.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    start as usize..ends.get(place).copied().unwrap_or(start) as usize
}

fn id(bytes: &Bytes, place: usize) -> FixedLenByteArray {
    ByteArray::from(bytes.slice(place * 16..place * 16 + 16)).into()
}

#[inline]
fn place_of(places: &[u32], row: u32) -> Option<usize> {
    places.get(row as usize).copied().filter(|place| *place != u32::MAX).map(|place| place as usize)
}

/// Writes the values of the rows, with their definition levels.
#[inline]
fn write_each<T: DataType>(
    order: &[u32],
    places: Option<&[u32]>,
    levels: &mut Vec<i16>,
    writer: &mut ColumnWriterImpl<'_, T>,
    value: impl Fn(usize) -> T::T,
) -> Result<()> {
    let mut values = Vec::with_capacity(BATCH.min(order.len()));
    for rows in order.chunks(BATCH) {
        values.clear();
        levels.clear();
        match places {
            None => {
                values.extend(rows.iter().map(|row| value(*row as usize)));
                levels.resize(rows.len(), 1);
            }
            Some(places) => {
                for row in rows {
                    let place = place_of(places, *row);
                    levels.push(i16::from(place.is_some()));
                    values.extend(place.map(&value));
                }
            }
        }
        writer.write_batch(&values, Some(levels), None)?;
    }
    Ok(())
}

/// Writes rows without a value.
fn write_nulls(rows: usize, scratch: &mut Scratch, writer: &mut ColumnWriter<'_>) -> Result<()> {
    let levels = &mut scratch.levels;
    levels.clear();
    levels.resize(rows.min(BATCH), 0);
    let mut left = rows;
    while left > 0 {
        let count = left.min(BATCH);
        let levels = levels.get(..count).unwrap_or_default();
        match writer {
            ColumnWriter::BoolColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
            ColumnWriter::Int32ColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
            ColumnWriter::Int64ColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
            ColumnWriter::DoubleColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
            ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
            ColumnWriter::FixedLenByteArrayColumnWriter(writer) => {
                // For a list: absent.
                let is_list = writer.get_descriptor().max_rep_level() > 0;
                writer.write_batch(&[], Some(levels), is_list.then_some(levels))?
            }
            _ => return Err(ParquetError::General("a type that no table has".into())),
        };
        left -= count;
    }
    Ok(())
}
