//! Descriptors of runtimes: their forms, hostile ones, and damaged ones.

use std::collections::BTreeMap;

use clr_dump::contracts::{ByteOrder, Contracts, ContractsError, Global};
use clr_dump::{Address, Memory, MemoryResult, Missing};

const HEADER: u64 = 0x1000;
const JSON: u64 = 0x2000;
const POINTERS: u64 = 0x9000;
/// The variable with the address of a sub-descriptor, its header, JSON and pointers.
const VARIABLE: u64 = 0xa000;
const PART: u64 = 0xb000;
const PART_JSON: u64 = 0xc000;

/// In the form of .NET 10.
const OLD: &str = r#"{"version":0,"baseline":"empty","types":{"Thread":{"Id":16,"LinkNext":[112,"pointer"]},
    "GCHandle":{"!":8},"UnwindInfo":{}},"globals":{"HashMapSlotsPerBucket":["0x4","uint32"],
    "Lowest":["-0x10","int64"],"RID":["1","string"],"ThreadStore":[[1],"pointer"]},
    "contracts":{"Loader":1,"Thread":3}}"#;
/// In the form of .NET 11: without most types, with comments, sub-descriptors, and names that have words as
/// versions.
const NEW: &str = r#"{"version":2,"baseline":"empty",/* offsets */"types":{"Thread":{"OSId":176,"!":400}},
    "globals":{"ObjectToMethodTableUnmask":"0x7","Store":[1],"Architecture":["x64","string"]},
    "subDescriptors":{"GC":[[2],"pointer"]},"contracts":{"Thread":"n1"},"others":[{"a":[1.5,null]}],}"#;
const PART_OF_NEW: &str = r#"{"version":2,"types":{"Generation":{"!":256,"StartSegment":56},"Thread":{"OSId":1}},
    "globals":{"HandleTableMap":[[0],"pointer"]},"subDescriptors":{},"contracts":{"GC":"c1"}}"#;

#[derive(Clone, Default)]
struct Parts(BTreeMap<u64, Vec<u8>>);

impl Parts {
    fn put(&mut self, address: u64, bytes: &[u8]) {
        self.0.insert(address, bytes.to_vec());
    }

    /// Puts a descriptor: its JSON, and its pointers.
    fn put_descriptor(&mut self, form: Form, [header, json, pointers]: [u64; 3], text: &str, words: &[u64]) {
        let mut bytes = form.number(0x0043_4144_4343_4e44, 8);
        bytes.extend(form.number(if form.width == 4 { 3 } else { 1 }, 4));
        bytes.extend(form.number(text.len() as u64, 4));
        bytes.extend(form.number(json, form.width));
        bytes.extend(form.number(words.len() as u64, 4));
        bytes.extend([0; 4]);
        bytes.extend(form.number(pointers, form.width));
        self.put(header, &bytes);
        self.put(json, text.as_bytes());
        let words: Vec<_> = words.iter().flat_map(|word| form.number(*word, form.width)).collect();
        self.put(pointers, &words);
    }
}

impl Memory for Parts {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        let part = self.0.range(..=address).next_back();
        let bytes = part.and_then(|(start, bytes)| {
            let from = usize::try_from(address - start).ok()?;
            bytes.get(from..from.checked_add(buffer.len())?)
        });
        buffer.copy_from_slice(bytes.ok_or(Missing { address })?);
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Form {
    width: usize,
    is_big_endian: bool,
}

const X64: Form = Form { width: 8, is_big_endian: false };

impl Form {
    fn number(self, number: u64, width: usize) -> Vec<u8> {
        let mut bytes = number.to_le_bytes()[..width].to_vec();
        if self.is_big_endian {
            bytes.reverse();
        }
        bytes
    }
}

/// A runtime with a descriptor; 0x7000, 0x7008 and so on are its pointers after the first one.
fn with(text: &str) -> Parts {
    let mut parts = Parts::default();
    parts.put_descriptor(X64, [HEADER, JSON, POINTERS], text, &[0, 0x7000, VARIABLE]);
    parts
}

/// A runtime with a sub-descriptor.
fn with_part(form: Form, text: &str, part: &str) -> Parts {
    let mut parts = Parts::default();
    parts.put_descriptor(form, [HEADER, JSON, POINTERS], text, &[0, 0x7000, VARIABLE]);
    parts.put(VARIABLE, &form.number(PART, form.width));
    parts.put_descriptor(form, [PART, PART_JSON, PART_JSON + 0x1000], part, &[0x7700]);
    parts
}

fn read(parts: &Parts) -> Result<Contracts, ContractsError> {
    Contracts::read(parts, Address::new(HEADER))
}

#[test]
fn the_descriptor_of_net_10_is_read() {
    let contracts = read(&with(OLD)).unwrap();
    assert_eq!(contracts.offset("Thread", "LinkNext"), Some(112));
    assert_eq!(contracts.offset("Thread", "Name"), None);
    assert_eq!((contracts.size("GCHandle"), contracts.size("Thread")), (Some(8), None));
    assert_eq!(contracts.number("HashMapSlotsPerBucket"), Some(4));
    assert_eq!(contracts.number("Lowest"), Some(u64::MAX - 15));
    // A type of strings makes a number one.
    assert_eq!((contracts.text("RID"), contracts.number("RID")), (Some("1"), None));
    assert_eq!(contracts.global("ThreadStore"), Some(&Global::Pointer(Address::new(0x7000))));
    assert_eq!(contracts.versions().collect::<Vec<_>>(), [("Loader", "1"), ("Thread", "3")]);
    let [descriptor] = contracts.descriptors() else { panic!("{:?}", contracts.descriptors()) };
    assert_eq!((descriptor.version, descriptor.baseline.as_str()), (0, "empty"));
    assert_eq!((descriptor.pointer_size, descriptor.byte_order), (8, ByteOrder::Little));
}

#[test]
fn the_descriptors_of_net_11_are_read_on_any_processor() {
    for (width, is_big_endian) in [(8, false), (8, true), (4, false), (4, true)] {
        let contracts = read(&with_part(Form { width, is_big_endian }, NEW, PART_OF_NEW)).unwrap();
        assert!(contracts.errors().is_empty(), "{:?}", contracts.errors());
        let [first, part] = contracts.descriptors() else { panic!("{:?}", contracts.descriptors()) };
        assert_eq!((first.name.as_str(), part.name.as_str()), ("", "GC"));
        assert_eq!((first.version, first.address, part.address.get()), (2, Address::new(HEADER), PART));
        let order = if is_big_endian { ByteOrder::Big } else { ByteOrder::Little };
        assert_eq!((usize::from(part.pointer_size), part.byte_order), (width, order));
        assert_eq!(contracts.versions().collect::<Vec<_>>(), [("Thread", "n1"), ("GC", "c1")]);
        assert_eq!(contracts.version("GC"), Some("c1"));
        // The first descriptor that states a fact counts.
        assert_eq!(contracts.offset("Thread", "OSId"), Some(176));
        assert_eq!((contracts.size("Thread"), contracts.size("Generation")), (Some(400), Some(256)));
        assert_eq!(contracts.number("ObjectToMethodTableUnmask"), Some(7));
        let [store, map] = ["Store", "HandleTableMap"].map(|name| contracts.pointer(name).unwrap().get());
        assert_eq!((store, map, contracts.text("Architecture")), (0x7000, 0x7700, Some("x64")));
    }
}

#[test]
fn a_part_that_has_not_started_is_left_out() {
    let mut parts = with_part(X64, NEW, PART_OF_NEW);
    parts.put(VARIABLE, &[0; 8]);
    let contracts = read(&parts).unwrap();
    assert_eq!((contracts.descriptors().len(), contracts.errors().len()), (1, 0));
}

/// The field and the address that an error names.
fn place(error: &ContractsError) -> (String, u64) {
    assert!(error.to_string().contains(&error.field) && error.to_string().contains(&error.problem));
    (error.field.clone(), error.address.get())
}

#[test]
fn a_hostile_header_is_an_error_with_its_field_and_address() {
    // The offset of a word in the header, and the word.
    let rows: [(usize, &[u8], &str, u64); 9] = [
        (0, b"DNCCDAC\x01", "magic", HEADER),
        (12, &u32::MAX.to_le_bytes(), "JSON size", HEADER + 12),
        // 100 MB of JSON.
        (12, &(100_u32 << 20).to_le_bytes(), "JSON size", HEADER + 12),
        (12, &(1_u32 << 18).to_le_bytes(), "JSON", JSON),
        (12, &3_u32.to_le_bytes(), "JSON", JSON + 3),
        (16, &[0xff; 8], "JSON", u64::MAX),
        (24, &u32::MAX.to_le_bytes(), "pointer data count", HEADER + 24),
        (24, &4_u32.to_le_bytes(), "pointer data [3]", POINTERS + 24),
        (32, &[0; 8], "pointer data [0]", 0),
    ];
    for (at, bytes, field, address) in rows {
        let mut parts = with(OLD);
        parts.0.get_mut(&HEADER).unwrap()[at..at + bytes.len()].copy_from_slice(bytes);
        assert_eq!(place(&read(&parts).unwrap_err()), (field.to_owned(), address), "{at}");
    }
    for length in 0..40 {
        let mut parts = with(OLD);
        parts.0.get_mut(&HEADER).unwrap().truncate(length);
        let (field, address) = place(&read(&parts).unwrap_err());
        assert!((HEADER..HEADER + 40).contains(&address), "{field} {address:#x}");
    }
}

#[test]
fn a_hostile_json_is_an_error_with_its_field_and_address() {
    let rows = [
        ("", "JSON", 0),
        ("[]", "JSON", 0),
        (r#"{"version":"x"}"#, "version", 11),
        (r#"{"baseline":1}"#, "baseline", 12),
        (r#"{"types":[{"name":"Thread"}]}"#, "types", 9),
        (r#"{"types":{"Thread":{"Id":-1}}}"#, "types.Thread.Id", 25),
        (r#"{"types":{"Thread":{"Id":16777217}}}"#, "types.Thread.Id", 25),
        (r#"{"types":{"Thread":{"!":4294967296}}}"#, "types.Thread.!", 24),
        (r#"{"types":{"Thread":{"Id":[]}}}"#, "types.Thread.Id", 27),
        (r#"{"types":{"Thread":{"Id":[1,"a","b"]}}}"#, "types.Thread.Id", 32),
        (r#"{"types":{"Thread":{"Id":1,"Id":2}}}"#, "types.Thread.Id", 27),
        (r#"{"types":{"Thread":{},"Thread":{}}}"#, "types.Thread", 22),
        (r#"{"types":{},"types":{}}"#, "types", 12),
        (r#"{"globals":{"A":[[3],"pointer"]}}"#, "globals.A", 16),
        (r#"{"globals":{"A":[["-1"],"pointer"]}}"#, "globals.A", 16),
        (r#"{"globals":{"A":[[1,2],"pointer"]}}"#, "globals.A", 20),
        (r#"{"globals":{"A":[[],"pointer"]}}"#, "globals.A", 16),
        (r#"{"globals":{"A":["x"]}}"#, "globals.A", 16),
        (r#"{"globals":{"A":[1,"uint8",2]}}"#, "globals.A", 27),
        (r#"{"globals":{"A":{}}}"#, "globals.A", 16),
        (r#"{"subDescriptors":{"GC":5}}"#, "subDescriptors.GC", 25),
        (r#"{"contracts":{"Thread":[1]}}"#, "contracts.Thread", 23),
        (r#"{"contracts":{}} {}"#, "JSON", 17),
    ];
    for (text, field, at) in rows {
        assert_eq!(place(&read(&with(text)).unwrap_err()), (field.to_owned(), JSON + at), "{text}");
    }
    let deep = format!(r#"{{"others":{}"#, "[".repeat(20_000));
    assert_eq!(place(&read(&with(&deep)).unwrap_err()).0, "others");
}

#[test]
fn a_hostile_sub_descriptor_is_left_out_and_said() {
    // Neither the pointer data nor the variable has an address that can be read.
    let mut parts = with_part(X64, NEW, PART_OF_NEW);
    parts.0.remove(&VARIABLE);
    let contracts = read(&parts).unwrap();
    assert_eq!(place(&contracts.errors()[0]), ("subDescriptors.GC".to_owned(), VARIABLE));
    assert_eq!(contracts.offset("Thread", "OSId"), Some(176));
    // It leads back to the first one, or to itself.
    let mut parts = with_part(X64, NEW, PART_OF_NEW);
    parts.put(VARIABLE, &HEADER.to_le_bytes());
    assert_eq!(place(&read(&parts).unwrap().errors()[0]), ("subDescriptors.GC".to_owned(), VARIABLE));
    let mut parts = with_part(X64, NEW, r#"{"subDescriptors":{"GC":[[0],"pointer"]}}"#);
    parts.put(PART_JSON + 0x1000, &VARIABLE.to_le_bytes());
    let contracts = read(&parts).unwrap();
    assert_eq!((contracts.descriptors().len(), contracts.errors().len()), (2, 1));
    // Its own errors have its name.
    let contracts = read(&with_part(X64, NEW, r#"{"types":1}"#)).unwrap();
    assert_eq!(place(&contracts.errors()[0]), ("GC: types".to_owned(), PART_JSON + 9));
    // All of them have the JSON of one descriptor.
    let long = format!("{{\"others\":\"\"}}{}", " ".repeat(1 << 18)).split_at(1 << 18).0.to_owned();
    let contracts = read(&with_part(X64, NEW, &long)).unwrap();
    assert_eq!(place(&contracts.errors()[0]), ("GC: JSON size".to_owned(), PART + 12));
}

/// Each descriptor has two others, without an end.
#[test]
fn sub_descriptors_without_end_are_bounded() {
    let mut parts = Parts::default();
    let text = r#"{"subDescriptors":{"A":[[0],"pointer"],"B":[[1],"pointer"]}}"#;
    let at = |index: u64| 0x10_0000 + index * 0x1000;
    for index in 0..200 {
        let start = at(index);
        let variables = [start + 0x800, start + 0x808];
        parts.put_descriptor(X64, [start, start + 0x100, start + 0x400], text, &variables);
        let next = [at(2 * index + 1), at(2 * index + 2)];
        parts.put(start + 0x800, &next.map(u64::to_le_bytes).concat());
    }
    let contracts = Contracts::read(&parts, Address::new(at(0))).unwrap();
    assert_eq!((contracts.descriptors().len(), contracts.errors().len()), (16, 16));
}

mod random {
    use super::*;

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % limit as u64).unwrap()
        }
    }

    /// An error names a field and an address of one of the parts; what is read has no more than the JSON
    /// states.
    #[test]
    fn ten_thousand_damaged_descriptors_are_read_or_refused() {
        const WORDS: [&[u8]; 12] =
            [b"{", b"}", b"[", b"]", b"\"", b",", b":", b"-", b"9", b"/*", b"\xff", b"\0"];
        let mut random = Random(0x2545_f491_4f6c_dd1d ^ testdata::seed());
        let whole = [with(OLD), with_part(X64, NEW, PART_OF_NEW)];
        let mut outcomes = [0_u32; 3];
        for round in 0..10_000 {
            let mut parts = whole[round % 2].clone();
            let addresses: Vec<u64> = parts.0.keys().copied().collect();
            for _ in 0..=random.below(4) {
                // Damage to the first header decides most; to the JSON, the rest.
                let address = [JSON, JSON, addresses[random.below(addresses.len())]][random.below(3)];
                let part = parts.0.get_mut(&address).unwrap();
                let at = random.below(part.len());
                match random.below(4) {
                    0 => part[at] ^= 1 << random.below(8),
                    1 => part.truncate(at.max(1)),
                    2 => {
                        let word = WORDS[random.below(WORDS.len())];
                        let end = (at + word.len()).min(part.len());
                        part[at..end].copy_from_slice(&word[..end - at]);
                    }
                    _ => {
                        let from = random.below(part.len());
                        let length = random.below(9).min(part.len() - from.max(at));
                        part.copy_within(from..from + length, at);
                    }
                }
            }
            match read(&parts) {
                Ok(contracts) => {
                    outcomes[usize::from(!contracts.errors().is_empty())] += 1;
                    assert!(contracts.descriptors().len() <= 2 && contracts.versions().count() <= 4);
                    assert!(contracts.errors().iter().all(|error| !error.field.is_empty()));
                }
                Err(error) => {
                    outcomes[2] += 1;
                    assert!(!error.field.is_empty() && !error.problem.is_empty(), "{error:?}");
                }
            }
        }
        assert!(outcomes.iter().all(|count| *count > 100), "{outcomes:?}");
    }
}
