//! A second writer of requests, which shares nothing with the crate's encoder: a mistake in the one does not cancel
//! itself out in the other.

use dipc_wire::{ProviderConfig, Request};

/// The empty string as the official tools write it: one code unit, the NUL.
pub(crate) const NUL_ALONE: &[u8] = &[1, 0, 0, 0, 0, 0];
/// The empty string as this crate writes it: no code unit at all.
pub(crate) const NOTHING: &[u8] = &[0, 0, 0, 0];

pub(crate) fn bytes(request: &Request, empty: &[u8]) -> Vec<u8> {
    let (set, id, payload) = match request {
        Request::StopTracing(stop) => (2, 1, stop.0.0.to_le_bytes().to_vec()),
        Request::CollectTracing2(c) => {
            let mut payload = words(&[c.buffer_mb, c.format.0]);
            payload.push(u8::from(c.request_rundown));
            payload.extend(providers(&c.providers, empty));
            (2, 3, payload)
        }
        Request::CollectTracing4(c) => {
            let mut payload = words(&[c.buffer_mb, c.format.0]);
            payload.extend(c.rundown_keyword.to_le_bytes());
            payload.push(u8::from(c.request_stackwalk));
            payload.extend(providers(&c.providers, empty));
            (2, 5, payload)
        }
        Request::ResumeRuntime(_) => (4, 1, Vec::new()),
        Request::ProcessInfo3(_) => (4, 8, Vec::new()),
        Request::Unknown(message) => {
            (message.header.command.set.0, message.header.command.id, message.payload.clone())
        }
        other => panic!("no capture has {other:?} so far: say here how it is written"),
    };
    let mut bytes = b"DOTNET_IPC_V1\0".to_vec();
    bytes.extend(u16::try_from(20 + payload.len()).unwrap().to_le_bytes());
    bytes.extend([set, id, 0, 0]);
    bytes.extend(payload);
    bytes
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn providers(providers: &[ProviderConfig], empty: &[u8]) -> Vec<u8> {
    let mut bytes = words(&[u32::try_from(providers.len()).unwrap()]);
    for provider in providers {
        bytes.extend(provider.keywords.to_le_bytes());
        bytes.extend(provider.level.to_le_bytes());
        bytes.extend(string(&provider.name, empty));
        bytes.extend(string(&provider.arguments, empty));
    }
    bytes
}

fn string(value: &str, empty: &[u8]) -> Vec<u8> {
    if value.is_empty() {
        return empty.to_vec();
    }
    let units: Vec<u16> = value.encode_utf16().chain([0]).collect();
    let mut bytes = words(&[u32::try_from(units.len()).unwrap()]);
    bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    bytes
}
