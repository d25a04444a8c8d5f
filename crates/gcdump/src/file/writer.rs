//! Writing of files, as dotnet-gcdump does.

use std::io::{self, Write};

use hashbrown::HashMap;

use super::{MAGIC, number, tag};
use crate::error::Error;
use crate::graph::{HeapGraph, Root};

/// The name that the tool gives itself in its files.
const TOOL: &str = "dotnet-gcdump";

/// The number of a node that was not numbered yet.
const UNNUMBERED: u32 = u32::MAX;

/// Maximum size of a part of a table, in bytes, unless a byte for each node is more.
const MIN_PART_SIZE: u32 = 4 << 20;

/// Writes the file of a graph. See [`Writer`].
///
/// ```
/// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
/// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
/// # builder.add_module(1, "/app/shop.dll");
/// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
/// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
/// # }
/// # builder.add_object(0x1000, 3, 32);
/// # builder.add_reference(0x1020);
/// # builder.add_object(0x1020, 2, 24);
/// # builder.add_root(RootKind::StrongHandle, 0x1000);
/// # let graph = builder.finish()?;
/// let mut file = Vec::new();
/// gcdump::file::write(&graph, &mut file)?;
/// let read = gcdump::file::read(&file)?;
/// assert_eq!(read.object_count(), graph.object_count());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If writing fails, or the graph does not fit into such a file.
pub fn write(graph: &HeapGraph, out: impl Write) -> io::Result<()> {
    Writer::new(graph).map_err(io::Error::other)?.write(out)
}

/// The file of a graph: the bytes that dotnet-gcdump writes for the same events.
///
/// Nodes are numbered as that tool numbers them: in the order of their first mention. Sizes of 2 GB and more
/// are written as 2,147,483,647. Takes 4 bytes for each node and one more for parts of tables.
#[derive(Debug)]
pub struct Writer<'g> {
    graph: &'g HeapGraph,
    /// The number of each node in the file.
    numbers: Vec<u32>,
    /// Children of the groups of roots, by number in the file.
    children: Vec<Vec<u32>>,
    /// Groups in preorder: each follows its parent and precedes that parent's next sibling.
    preorder: Vec<u32>,
    /// The types of the groups.
    group_types: Vec<u32>,
    /// The names of the types that are used only for groups.
    group_type_names: Vec<&'g str>,
    /// Bytes of all records together.
    blob_length: u32,
}

/// The record of a node: its type, its size if it differs from the type's, and its references.
struct Record<'a> {
    number: u32,
    file_type: u32,
    size: Option<u32>,
    children: &'a [u32],
    /// The numbers of `children`, if these are nodes.
    numbers: Option<&'a [u32]>,
}

impl<'g> Writer<'g> {
    /// Numbers the nodes of a graph.
    ///
    /// # Errors
    /// If the graph does not fit into such a file.
    pub fn new(graph: &'g HeapGraph) -> Result<Self, Error> {
        let mut writer = Self {
            graph,
            numbers: vec![UNNUMBERED; graph.node_count() as usize],
            children: vec![Vec::new(); graph.groups.len()],
            preorder: Vec::new(),
            group_types: Vec::new(),
            group_type_names: Vec::new(),
            blob_length: 0,
        };
        writer.number_nodes();
        writer.order_groups();
        // The first record, for missing nodes, takes two bytes.
        let mut length = 2_u64;
        writer
            .each_record(|record| {
                length = length.saturating_add(record.length());
                Ok(())
            })
            .map_err(|_| Error::TooLarge("its references"))?;
        let length = i32::try_from(length).map_err(|_| Error::TooLarge("its objects"))?;
        writer.blob_length = length.unsigned_abs();
        if i32::try_from(writer.numbers.len()).is_err() {
            return Err(Error::TooLarge("more than 2,147,483,647 nodes"));
        }
        Ok(writer)
    }

    fn number_nodes(&mut self) {
        let first_group = self.graph.first_group();
        let mut next = 0_u32;
        let mut number = |numbers: &mut [u32], node: u32| {
            let Some(place) = numbers.get_mut(node as usize) else { return (0, false) };
            let is_new = *place == UNNUMBERED;
            if is_new {
                *place = next;
                next = next.saturating_add(1);
            }
            (*place, is_new)
        };
        number(&mut self.numbers, first_group);
        for root in &self.graph.roots {
            // Ancestor groups precede the group.
            let mut chain = Vec::new();
            let mut group = Some(root.group);
            while let Some(at) = group {
                let node = first_group.saturating_add(at);
                if self.numbers.get(node as usize).is_none_or(|number| *number != UNNUMBERED) {
                    break;
                }
                chain.push(at);
                group = self.graph.groups.get(at as usize).and_then(|group| group.parent);
            }
            for at in chain.into_iter().rev() {
                let (of, _) = number(&mut self.numbers, first_group.saturating_add(at));
                let parent = self.graph.groups.get(at as usize).and_then(|group| group.parent);
                if let Some(children) = parent.and_then(|parent| self.children.get_mut(parent as usize)) {
                    children.push(of);
                }
            }
            if root.target != Root::NONE {
                let (of, _) = number(&mut self.numbers, root.target);
                if let Some(children) = self.children.get_mut(root.group as usize) {
                    children.push(of);
                }
            }
        }
        for object in self.graph.objects() {
            number(&mut self.numbers, object.id().0);
            for target in object.edges() {
                number(&mut self.numbers, *target);
            }
        }
        // Unreferenced nodes: they occur in graphs that were read from a file.
        for node in 0..self.graph.node_count() {
            number(&mut self.numbers, node);
        }
    }

    /// Puts the groups into the order of their records, and assigns their types.
    fn order_groups(&mut self) {
        let groups = &self.graph.groups;
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); groups.len()];
        let first_group = self.graph.first_group();
        let of_group = |group: &u32| self.numbers.get(first_group.saturating_add(*group) as usize);
        let mut by_number: Vec<u32> = (0..).take(groups.len()).collect();
        by_number.sort_by_key(of_group);
        for group in by_number {
            let parent = groups.get(group as usize).and_then(|group| group.parent);
            if let Some(below) = parent.and_then(|parent| below.get_mut(parent as usize)) {
                below.push(group);
            }
        }
        let mut waiting = vec![0];
        while let Some(group) = waiting.pop() {
            self.preorder.push(group);
            let below = below.get_mut(group as usize).map(std::mem::take).unwrap_or_default();
            waiting.extend(below.into_iter().rev());
        }
        let mut by_name: HashMap<&str, u32> = HashMap::new();
        self.group_types = vec![0; groups.len()];
        for group in &self.preorder {
            let Some(name) = groups.get(*group as usize).map(|group| &*group.name) else { continue };
            let names = &mut self.group_type_names;
            let number = *by_name.entry(name).or_insert_with(|| {
                names.push(name);
                count(self.graph.types.len()).saturating_add(count(names.len())).saturating_sub(1)
            });
            if let Some(place) = self.group_types.get_mut(*group as usize) {
                *place = number;
            }
        }
    }

    /// Passes the records to `each` in the order of the file.
    fn each_record(&self, mut each: impl FnMut(&Record<'_>) -> io::Result<()>) -> io::Result<()> {
        for object in self.graph.objects() {
            let shape = object.shape();
            let of_type = self.graph.types.get(shape.file_type as usize).and_then(|of| of.first_size);
            let size = clamped(shape.size);
            each(&Record {
                number: self.number(object.id().0),
                file_type: shape.file_type,
                size: (of_type.map(clamped) != Some(size)).then_some(size),
                children: object.edges(),
                numbers: Some(&self.numbers),
            })?;
        }
        for group in &self.preorder {
            each(&Record {
                number: self.number(self.graph.first_group().saturating_add(*group)),
                file_type: self.group_types.get(*group as usize).copied().unwrap_or_default(),
                size: None,
                children: self.children.get(*group as usize).map(Vec::as_slice).unwrap_or_default(),
                numbers: None,
            })?;
        }
        Ok(())
    }

    fn number(&self, node: u32) -> u32 {
        self.numbers.get(node as usize).copied().unwrap_or_default()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = Output { out, written: 0 };
        out.string(Some(MAGIC))?;
        out.begin(10, 8, "GCHeapDump")?;
        out.begin(1, 0, "Graphs.MemoryGraph")?;
        self.write_graph(&mut out)?;
        out.bytes(&[tag::END])?;
        out.bytes(&[u8::from(self.graph.pointer_size == 8)])?;
        out.bytes(&1_f32.to_le_bytes())?;
        out.bytes(&1_f32.to_le_bytes())?;
        // No JavaScript heap, no segments.
        out.bytes(&[tag::NULL, tag::NULL])?;
        // Log, time, machine, process, pid, commit, working set, multipliers: the tool leaves all of them
        // empty.
        out.string(None)?;
        out.bytes(&0_i64.to_le_bytes())?;
        out.string(None)?;
        out.string(None)?;
        out.bytes(&[0; 4 + 8 + 8 + 4])?;
        out.bytes(&[tag::SKIP])?;
        out.number(0)?;
        out.bytes(&[tag::NULL])?;
        let behind_interop = out.position()?;
        out.bytes(&[tag::STRING])?;
        out.string(Some(TOOL))?;
        out.bytes(&[tag::END, tag::END])?;
        let table = out.position()?;
        out.number(1)?;
        out.number(behind_interop)?;
        let trailer = out.position()?;
        out.number(table)?;
        out.number(trailer)?;
        out.out.flush()
    }

    fn write_graph(&self, out: &mut Output<impl Write>) -> io::Result<()> {
        let total = self
            .graph
            .objects()
            .fold(0_i64, |sum, object| sum.saturating_add(i64::from(clamped(object.size()))));
        out.bytes(&total.to_le_bytes())?;
        // The root.
        out.number(0)?;
        let types = &self.graph.types;
        out.number(count(types.len()).saturating_add(count(self.group_type_names.len())))?;
        for of in types {
            out.string(Some(&of.name))?;
            // -1: no object has the type.
            out.number(of.first_size.map_or(u32::MAX, clamped))?;
            out.string(of.module.as_deref())?;
        }
        for name in &self.group_type_names {
            out.string(Some(name))?;
            out.number(0)?;
            out.string(None)?;
        }
        let nodes = count(self.numbers.len());
        out.number(nodes)?;
        self.write_labels(out)?;
        out.number(self.blob_length)?;
        out.bytes(&[0, 0])?;
        self.each_record(|record| record.write(out))?;
        out.number(nodes)?;
        self.write_addresses(out)?;
        out.bytes(&[tag::BYTE, u8::from(self.graph.pointer_size == 8)])
    }

    /// Writes the offset of each node's record, in the order of their numbers.
    fn write_labels(&self, out: &mut Output<impl Write>) -> io::Result<()> {
        for part in self.parts(4) {
            let mut labels = vec![0_u32; part.len()];
            let mut label = 2_u32;
            self.each_record(|record| {
                let place = record.number.checked_sub(part.start).map(|place| place as usize);
                if let Some(place) = place.and_then(|place| labels.get_mut(place)) {
                    *place = label;
                }
                label = label.saturating_add(u32::try_from(record.length()).unwrap_or(u32::MAX));
                Ok(())
            })?;
            labels.iter().try_for_each(|label| out.number(*label))?;
        }
        Ok(())
    }

    /// Writes the address of each node, in the order of their numbers.
    fn write_addresses(&self, out: &mut Output<impl Write>) -> io::Result<()> {
        for part in self.parts(8) {
            let mut addresses = vec![0_u64; part.len()];
            self.graph.each_address(|node, address| {
                let place = self.number(node).checked_sub(part.start).map(|place| place as usize);
                if let Some(place) = place.and_then(|place| addresses.get_mut(place)) {
                    *place = address;
                }
            });
            addresses.iter().try_for_each(|address| out.bytes(&address.to_le_bytes()))?;
        }
        Ok(())
    }

    /// Ranges of numbers, for tables with `bytes` bytes for each node, which would take much memory if built
    /// at once.
    fn parts(&self, bytes: u32) -> impl Iterator<Item = std::ops::Range<u32>> + use<> {
        let nodes = count(self.numbers.len());
        let size = nodes.max(MIN_PART_SIZE).div_ceil(bytes);
        (0..nodes.div_ceil(size)).map(move |part| {
            let start = part.saturating_mul(size);
            start..start.saturating_add(size).min(nodes)
        })
    }
}

impl Record<'_> {
    fn fields(&self) -> (i32, Option<i32>, i32) {
        let flag = i32::from(self.size.is_some());
        let of_type = self.file_type.cast_signed().wrapping_mul(2) | flag;
        (of_type, self.size.map(u32::cast_signed), count(self.children.len()).cast_signed())
    }

    fn children(&self) -> impl Iterator<Item = i32> {
        self.children.iter().map(|child| {
            let number = match self.numbers {
                Some(numbers) => numbers.get(*child as usize).copied().unwrap_or_default(),
                None => *child,
            };
            number.wrapping_sub(self.number).cast_signed()
        })
    }

    fn length(&self) -> u64 {
        let (of_type, size, children) = self.fields();
        let fields = [Some(of_type), size, Some(children)].into_iter().flatten();
        fields.chain(self.children()).fold(0, |sum, value| sum.saturating_add(number::length(value) as u64))
    }

    fn write(&self, out: &mut Output<impl Write>) -> io::Result<()> {
        let (of_type, size, children) = self.fields();
        let mut fields = [Some(of_type), size, Some(children)].into_iter().flatten();
        fields.try_for_each(|value| out.bytes(number::encode(value).as_bytes()))?;
        self.children().try_for_each(|value| out.bytes(number::encode(value).as_bytes()))
    }
}

/// A writer that tracks its position.
struct Output<W> {
    out: W,
    written: u64,
}

impl<W: Write> Output<W> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written = self.written.saturating_add(bytes.len() as u64);
        self.out.write_all(bytes)
    }

    fn number(&mut self, value: u32) -> io::Result<()> {
        self.bytes(&value.to_le_bytes())
    }

    /// The position, which has to fit into a label.
    fn position(&self) -> io::Result<u32> {
        u32::try_from(self.written).map_err(|_| io::Error::other(Error::TooLarge("labels have 32 bits")))
    }

    /// Writes a string: its length in UTF-16 code units, then the units, one to three bytes each.
    #[allow(clippy::cast_possible_truncation, reason = "masked or small")]
    fn string(&mut self, text: Option<&str>) -> io::Result<()> {
        let Some(text) = text else { return self.bytes(&(-1_i32).to_le_bytes()) };
        self.number(count(text.encode_utf16().count()))?;
        for unit in text.encode_utf16() {
            let low = (unit & 0x3f) as u8 | 0x80;
            match unit {
                0..0x80 => self.bytes(&[unit as u8])?,
                0x80..0x800 => self.bytes(&[0xc0 | (unit >> 6) as u8, low])?,
                _ => self.bytes(&[0xe0 | (unit >> 12) as u8, (unit >> 6 & 0x3f) as u8 | 0x80, low])?,
            }
        }
        Ok(())
    }

    /// Writes the beginning of an object, with its type.
    fn begin(&mut self, version: i32, oldest_reader: i32, name: &str) -> io::Result<()> {
        self.bytes(&[tag::BEGIN, tag::BEGIN, tag::NULL])?;
        self.bytes(&version.to_le_bytes())?;
        self.bytes(&oldest_reader.to_le_bytes())?;
        self.string(Some(name))?;
        self.bytes(&[tag::END])
    }
}

/// A size as files have it.
fn clamped(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs())
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
