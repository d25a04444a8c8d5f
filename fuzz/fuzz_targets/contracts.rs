//! Any bytes as the JSON of a runtime's descriptor and of its sub-descriptor, or as the memory that has both.
//!
//! The two lowest bits of the first byte are the order of bytes and the width of pointers. With the next one,
//! the rest is memory that begins with the header.

#![no_main]

use clr_dump::contracts::{Contracts, ContractsError};
use clr_dump::{Address, Memory, MemoryResult, Missing};
use libfuzzer_sys::fuzz_target;

const HEADER: u64 = 0x1000;
const SUB_HEADER: u64 = 0x1100;
const POINTERS: u64 = 0x1200;
const VARIABLE: u64 = 0x1300;
const TEXT: u64 = 0x10_0000;

/// Parts of memory: their addresses and bytes.
struct Parts(Vec<(u64, Vec<u8>)>);

impl Memory for Parts {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        let found = self.0.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(buffer.len())?)
        });
        buffer.copy_from_slice(found.ok_or(Missing { address })?);
        Ok(())
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((form, rest)) = input.split_first() else { return };
    dipc_fuzz::bounded(input.len(), || {
        let parts = if form & 4 == 0 { around(*form, rest) } else { vec![(HEADER, rest.to_vec())] };
        check(Contracts::read(&Parts(parts), Address::new(HEADER)));
    });
});

/// A descriptor with a sub-descriptor, which have the same JSON.
fn around(form: u8, text: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let width = if form & 2 == 0 { 8 } else { 4 };
    let number = |number: u64, width: usize| {
        let mut bytes = number.to_le_bytes()[..width].to_vec();
        if form & 1 != 0 {
            bytes.reverse();
        }
        bytes
    };
    let header = [
        number(0x0043_4144_4343_4e44, 8),
        number(if width == 8 { 1 } else { 3 }, 4),
        number(text.len() as u64, 4),
        number(TEXT, width),
        number(3, 4),
        number(0, 4),
        number(POINTERS, width),
    ];
    let pointers = [0, HEADER, VARIABLE].map(|pointer| number(pointer, width)).concat();
    let header = header.concat();
    vec![
        (HEADER, header.clone()),
        (SUB_HEADER, header),
        (POINTERS, pointers),
        (VARIABLE, number(SUB_HEADER, width)),
        (TEXT, text.to_vec()),
    ]
}

fn check(result: Result<Contracts, ContractsError>) {
    match result {
        Ok(contracts) => {
            for (name, _) in contracts.versions() {
                assert!(contracts.version(name).is_some());
            }
            assert!(contracts.descriptors().len() <= 16 && contracts.errors().len() <= 16);
        }
        Err(error) => assert!(!error.field.is_empty()),
    }
}
