//! Reading of files from any writer.

use std::sync::Arc;

use hashbrown::HashMap;

use super::input::Input;
use super::{number, tag};
use crate::address::{AddressCode, AddressTable};
use crate::completeness::Completeness;
use crate::error::Error;
use crate::graph::{HeapGraph, HeapType, Root, RootGroup, Shape, slots};
use crate::large_vec::push;
use crate::object_addresses::ObjectAddresses;
use crate::shape_numbers::ShapeNumbers;
use crate::type_name::{csharp_of_tool, namespace, without_size_class};

/// The oldest supported version of a dump: that of dotnet-gcdump. Versions up to 8 have other fields.
const OLDEST_VERSION: i32 = 9;
/// The newest known version. A later one states which readers can read it.
const NEWEST_VERSION: i32 = 10;
/// The problem of records that share bytes.
const OVERLAP: &str = "records that overlap";

/// Reads a `.gcdump` file of dotnet-gcdump, `PerfView` or Visual Studio.
///
/// The graph has the file's nodes in the order of their numbers. Memory is linear in the length of the file.
///
/// ```
/// use gcdump::{Error, file};
///
/// // A recording is not a .gcdump file; `HeapGraphBuilder` takes its events.
/// assert!(matches!(file::read(b"Nettrace"), Err(Error::NotGcDump(_))));
/// ```
///
/// # Errors
/// If the bytes are not such a file, or contradict themselves.
pub fn read(bytes: &[u8]) -> Result<HeapGraph, Error> {
    let mut input = Input::new(bytes)?;
    let dump = input.begin()?.filter(|of| of.name == "GCHeapDump");
    let dump = dump.ok_or(Error::NotGcDump("its first object is not a GCHeapDump"))?;
    if dump.version < OLDEST_VERSION {
        return Err(Error::Unsupported("it is older than version 9 of its format"));
    }
    if dump.oldest_reader > NEWEST_VERSION {
        return Err(Error::Unsupported("it needs a newer reader"));
    }
    let graph = input.begin()?.filter(|of| of.name == "Graphs.MemoryGraph");
    let graph = graph.ok_or_else(|| input.damaged("no graph in the dump"))?;
    let file = FileGraph::read(&mut input, graph.oldest_reader >= 1)?;
    if input.u8()? != tag::END {
        return Err(input.damaged("fields of a graph that are not known"));
    }
    let _is_64_bit = input.u8()?;
    let (counts, sizes) = (input.f32()?, input.f32()?);
    if (counts, sizes) != (1.0, 1.0) {
        return Err(Error::Unsupported("it has a sample of the objects only"));
    }
    file.into_graph()
}

/// The graph as the file has it.
struct FileGraph<'a> {
    root: usize,
    types: Vec<HeapType>,
    /// The offset of each node's record; 0 for a node without one.
    labels: &'a [[u8; 4]],
    blob: &'a [u8],
    addresses: &'a [[u8; 8]],
    pointer_size: u8,
    /// The offset of the blob in the file.
    blob_start: usize,
}

/// The record of a node.
struct Record<'a> {
    of_type: u32,
    size: u64,
    /// The number of children.
    count: u32,
    /// The children's numbers, and the bytes after them.
    children: &'a [u8],
}

impl<'a> FileGraph<'a> {
    fn read(input: &mut Input<'a>, has_deferred_types: bool) -> Result<Self, Error> {
        let _total = input.i64()?;
        let root = usize::try_from(input.i32()?).map_err(|_| input.damaged("a root that is not a node"))?;
        let mut types = Vec::new();
        for _ in 0..input.count(12)? {
            let name = input.string()?;
            let size = input.i32()?;
            let module = input.string()?;
            let name = name.unwrap_or_default();
            types.push(HeapType {
                csharp: csharp_of_tool(&name),
                namespace: namespace(&name).to_owned(),
                is_known: !name.starts_with("UNKNOWN 0x"),
                name: name.into(),
                module: module.map(Arc::from),
                first_size: u64::try_from(size).ok(),
            });
        }
        let count = input.count(4)?;
        let labels = input.array::<4>(count)?;
        let length = input.count(1)?;
        let blob_start = input.position();
        let blob = input.take(length)?;
        if has_deferred_types {
            let end = input.forward()?;
            read_deferred_types(input, &mut types);
            input.seek(end);
        }
        let count = input.count(8)?;
        let addresses = input.array::<8>(count)?;
        let mut pointer_size = 8;
        let before = input.position();
        if input.u8()? == tag::BYTE {
            pointer_size = if input.u8()? == 0 { 4 } else { 8 };
        } else {
            input.seek(before);
        }
        if labels.len() > u32::MAX as usize / 2 {
            return Err(Error::Unsupported("it has more than 2,147,483,647 nodes"));
        }
        Ok(Self { root, types, labels, blob, addresses, pointer_size, blob_start })
    }

    fn damaged(&self, label: u32, problem: &'static str) -> Error {
        Error::Damaged { offset: (self.blob_start as u64).saturating_add(label.into()), problem }
    }

    fn label(&self, node: usize) -> Option<u32> {
        self.labels.get(node).map(|label| u32::from_le_bytes(*label))
    }

    fn address(&self, node: usize) -> u64 {
        self.addresses.get(node).map_or(0, |address| u64::from_le_bytes(*address))
    }

    /// The record of a node, if present.
    fn record(&self, node: usize) -> Result<Option<Record<'a>>, Error> {
        let label = self.label(node).unwrap_or_default();
        if label == 0 {
            return Ok(None);
        }
        let damaged = |problem| self.damaged(label, problem);
        let bytes = self
            .blob
            .get(label as usize..)
            .ok_or_else(|| damaged("a record after the end of all records"))?;
        let cut = || damaged("a record that is cut");
        let (of_type, mut rest) = number::decode(bytes).ok_or_else(cut)?;
        let has_size = of_type & 1 == 1;
        let of_type = u32::try_from(of_type >> 1).ok().filter(|of| (*of as usize) < self.types.len());
        let of_type = of_type.ok_or_else(|| damaged("an object of an undefined type"))?;
        let mut size = None;
        if has_size {
            let (number, after) = number::decode(rest).ok_or_else(cut)?;
            size = Some(u64::try_from(number).map_err(|_| damaged("a negative size"))?);
            rest = after;
        }
        let own = self.types.get(of_type as usize).and_then(|of| of.first_size);
        let (count, children) = number::decode(rest).ok_or_else(cut)?;
        let count = u32::try_from(count).ok().filter(|count| *count as usize <= children.len());
        let count = count.ok_or_else(|| damaged("a count that the records have no room for"))?;
        Ok(Some(Record { of_type, size: size.or(own).unwrap_or_default(), count, children }))
    }

    /// Passes the children of a node to `each`.
    fn each_child(&self, node: usize, record: &Record<'_>, mut each: impl FnMut(usize)) -> Result<(), Error> {
        let mut rest = record.children;
        let damaged = |problem| self.damaged(self.label(node).unwrap_or_default(), problem);
        for _ in 0..record.count {
            let (distance, after) = number::decode(rest).ok_or_else(|| damaged("a record that is cut"))?;
            rest = after;
            let child = isize::try_from(distance).ok().and_then(|distance| node.checked_add_signed(distance));
            let child = child.filter(|child| *child < self.labels.len());
            each(child.ok_or_else(|| damaged("a reference to an undefined node"))?);
        }
        Ok(())
    }

    /// The groups of roots, each with the number of its node and of its parent group, in the order of a walk
    /// from the root.
    fn groups(&self) -> Result<Vec<(usize, Option<u32>)>, Error> {
        let mut found: HashMap<usize, ()> = HashMap::new();
        let mut groups = Vec::new();
        let mut waiting = vec![(self.root, None)];
        let mut children = 0_usize;
        while let Some((node, parent)) = waiting.pop() {
            if found.insert(node, ()).is_some() {
                continue;
            }
            let Some(record) = self.record(node)? else { continue };
            let number = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            groups.push((node, parent));
            let first = waiting.len();
            // Overlapping records could have more references than the file has bytes.
            children = children.saturating_add(record.count as usize);
            if children > self.blob.len() {
                return Err(self.damaged(self.label(node).unwrap_or_default(), OVERLAP));
            }
            self.each_child(node, &record, |child| {
                if self.is_group(child) {
                    waiting.push((child, Some(number)));
                }
            })?;
            waiting.get_mut(first..).unwrap_or_default().reverse();
        }
        // Everything else is in the first group.
        if groups.is_empty() { Err(self.damaged(0, "a root without a record")) } else { Ok(groups) }
    }

    /// Returns true if a node represents roots and is not an object.
    fn is_group(&self, node: usize) -> bool {
        let has_name = |record: &Record<'_>| {
            let of = self.types.get(record.of_type as usize);
            record.size == 0 && of.is_some_and(|of| of.name.starts_with('['))
        };
        self.address(node) == 0 && matches!(self.record(node), Ok(Some(record)) if has_name(&record))
    }

    fn into_graph(mut self) -> Result<HeapGraph, Error> {
        const NONE: u32 = u32::MAX;
        if self.root >= self.labels.len() {
            return Err(self.damaged(0, "a root that is not a node"));
        }
        let group_nodes = self.groups()?;
        // The number of each node in the graph: objects first.
        let mut ids = vec![NONE; self.labels.len()];
        let mut next = 0_u32;
        let mut is_group = vec![false; self.labels.len()];
        for (node, _) in &group_nodes {
            if let Some(place) = is_group.get_mut(*node) {
                *place = true;
            }
        }
        for has_record in [true, false] {
            for ((id, label), is_group) in ids.iter_mut().zip(self.labels).zip(&is_group) {
                if !is_group && (u32::from_le_bytes(*label) != 0) == has_record {
                    *id = next;
                    next = next.saturating_add(1);
                }
            }
        }
        drop(is_group);
        for (node, _) in &group_nodes {
            if let Some(id) = ids.get_mut(*node) {
                *id = next;
                next = next.saturating_add(1);
            }
        }
        let mut objects = Objects::new(self.pointer_size, &self.types);
        let id = |node: usize| ids.get(node).copied().unwrap_or_default();
        let first_group = next.saturating_sub(u32::try_from(group_nodes.len()).unwrap_or(u32::MAX));
        for node in 0..self.labels.len() {
            let code = objects.encode(self.address(node));
            if id(node) >= first_group {
                continue;
            }
            let Some(record) = self.record(node)? else {
                objects.undefined.push(code);
                continue;
            };
            objects.add(code, &record);
            self.each_child(node, &record, |child| push(&mut objects.edges, id(child)))?;
            if objects.edges.len() > self.blob.len() {
                return Err(self.damaged(self.label(node).unwrap_or_default(), OVERLAP));
            }
        }
        let (mut groups, mut roots) = (Vec::new(), Vec::new());
        for (number, (node, parent)) in (0_u32..).zip(&group_nodes) {
            let Some(record) = self.record(*node)? else { continue };
            let of = self.types.get(record.of_type as usize);
            groups.push(RootGroup {
                name: of.map(|of| of.name.clone()).unwrap_or_default(),
                parent: *parent,
                owner: None,
            });
            self.each_child(*node, &record, |child| match id(child).checked_sub(first_group) {
                Some(group) => roots.push(Root { group, target: Root::NONE }),
                None => roots.push(Root { group: number, target: id(child) }),
            })?;
            if roots.len() > self.blob.len() {
                return Err(self.damaged(self.label(*node).unwrap_or_default(), OVERLAP));
            }
        }
        Ok(objects.into_graph(std::mem::take(&mut self.types), groups, roots))
    }
}

/// The objects of a file, as the graph has them.
struct Objects {
    addresses: AddressTable,
    pointer_size: u8,
    object_addresses: ObjectAddresses,
    object_shapes: ShapeNumbers,
    shapes: Vec<Shape>,
    numbers: HashMap<(u32, u64, u32), u32>,
    edges: Vec<u32>,
    undefined: Vec<AddressCode>,
    /// For each of the file's types, the type without its size class.
    plain_types: Vec<u32>,
    invalid_addresses: u64,
}

impl Objects {
    fn new(pointer_size: u8, types: &[HeapType]) -> Self {
        let mut by_name: HashMap<(&str, Option<&str>), u32> = HashMap::new();
        for (number, of) in (0_u32..).zip(types) {
            by_name.entry((&of.name, of.module())).or_insert(number);
        }
        let plain_types = (0_u32..).zip(types).map(|(number, of)| {
            by_name.get(&(without_size_class(&of.name), of.module())).copied().unwrap_or(number)
        });
        Self {
            addresses: AddressTable::new(pointer_size),
            pointer_size,
            object_addresses: ObjectAddresses::default(),
            object_shapes: ShapeNumbers::default(),
            shapes: Vec::new(),
            numbers: HashMap::new(),
            edges: Vec::new(),
            undefined: Vec::new(),
            plain_types: plain_types.collect(),
            invalid_addresses: 0,
        }
    }

    fn encode(&mut self, address: u64) -> AddressCode {
        self.addresses.encode(address).unwrap_or_else(|| {
            self.invalid_addresses = self.invalid_addresses.saturating_add(1);
            AddressCode::NONE
        })
    }

    fn add(&mut self, code: AddressCode, record: &Record<'_>) {
        let shapes = &mut self.shapes;
        let shape = *self.numbers.entry((record.of_type, record.size, record.count)).or_insert_with(|| {
            let plain = self.plain_types.get(record.of_type as usize).copied();
            shapes.push(Shape {
                heap_type: plain.unwrap_or_default(),
                file_type: record.of_type,
                size: record.size,
                edges: record.count,
            });
            u32::try_from(shapes.len()).unwrap_or(u32::MAX).saturating_sub(1)
        });
        self.object_shapes.push(shape);
        let (of_objects, shapes, pointer_size) = (&self.object_shapes, &self.shapes, self.pointer_size);
        self.object_addresses.push(code, |object| {
            let shape = of_objects.get(object).and_then(|shape| shapes.get(shape as usize));
            slots(shape.map_or(0, |shape| shape.size), pointer_size)
        });
    }

    fn into_graph(self, types: Vec<HeapType>, groups: Vec<RootGroup>, roots: Vec<Root>) -> HeapGraph {
        let objects = self.object_addresses.count();
        let is_dangling = |target: u32| {
            let code = target.checked_sub(objects).and_then(|place| self.undefined.get(place as usize));
            code.is_some_and(|code| self.addresses.decode(*code) != 0)
        };
        let targets = self
            .edges
            .iter()
            .copied()
            .chain(roots.iter().map(|root| root.target).filter(|target| *target != Root::NONE));
        let dangling = targets.filter(|target| is_dangling(*target)).count() as u64;
        let is_unknown = |shape: &u32| {
            let shape = self.shapes.get(*shape as usize);
            shape.and_then(|shape| types.get(shape.heap_type as usize)).is_some_and(|of| !of.is_known)
        };
        let unknown = self.object_shapes.iter().filter(|shape| is_unknown(shape)).count() as u64;
        let mut unknown_types: Vec<_> = self.shapes.iter().map(|shape| shape.heap_type).collect();
        unknown_types.sort_unstable();
        unknown_types.dedup();
        unknown_types.retain(|of| types.get(*of as usize).is_some_and(|of| !of.is_known));
        let completeness = Completeness {
            dangling_references: dangling,
            objects_of_unknown_types: unknown,
            unknown_types: unknown_types.len() as u64,
            invalid_addresses: self.invalid_addresses,
            ..Completeness::default()
        };
        let mut graph = HeapGraph {
            process_id: None,
            other_processes: Vec::new(),
            pointer_size: self.pointer_size,
            addresses: self.addresses,
            object_addresses: self.object_addresses,
            object_shapes: self.object_shapes,
            shapes: self.shapes,
            edge_starts: Vec::new(),
            edges: self.edges,
            undefined: self.undefined,
            types,
            groups,
            roots,
            completeness,
        };
        graph.index_edges();
        graph
    }
}

/// Names the types for which a file has only module and token. An unreadable entry leaves its type without a
/// name: the caller moves past all of them.
fn read_deferred_types(input: &mut Input<'_>, types: &mut [HeapType]) {
    let Ok(count) = input.count(9) else { return };
    let mut modules: HashMap<usize, Arc<str>> = HashMap::new();
    for of in types.iter_mut().take(count) {
        let Some((token, module, suffix)) = read_deferred_type(input, &mut modules) else { return };
        if of.name.is_empty() && token != 0 {
            of.csharp = format!("Type(0x{token:x}){suffix}");
            of.name = of.csharp.as_str().into();
            of.module = of.module.take().or(module);
        }
    }
}

fn read_deferred_type(
    input: &mut Input<'_>,
    modules: &mut HashMap<usize, Arc<str>>,
) -> Option<(i32, Option<Arc<str>>, String)> {
    let token = input.i32().ok()?;
    let place = input.position();
    let module = if input.u8().ok()? == tag::OBJECT_REFERENCE {
        let label = input.u32().ok()? as usize;
        modules.get(&label).cloned()
    } else {
        input.seek(place);
        let path = read_module(input)?;
        modules.insert(place, Arc::clone(&path));
        Some(path)
    };
    let suffix = input.string().ok()?.unwrap_or_default();
    Some((token, module, suffix))
}

/// Reads a module's path. Its size field has four bytes in some files and eight in others of the same
/// version.
fn read_module(input: &mut Input<'_>) -> Option<Arc<str>> {
    input.begin().ok()??;
    let path: Arc<str> = input.string().ok()?.unwrap_or_default().into();
    let behind_path = input.position();
    [4, 8].into_iter().find_map(|size| {
        input.seek(behind_path);
        input.take(8_usize.saturating_add(size).saturating_add(8)).ok()?;
        input.string().ok()?;
        input.take(16 + 4).ok()?;
        (input.u8().ok()? == tag::END).then(|| Arc::clone(&path))
    })
}
