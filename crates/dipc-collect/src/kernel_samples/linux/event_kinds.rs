//! The kinds of the events that a runtime writes to the kernel.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use clr_events::{Provider, Schema};
use linux_sampler::RecordingWriter;
use nettrace::raw::ParsedMetadata;
use nettrace_writer::{Error, EventKind, EventKindId};

/// Maximum number of kinds of events with the same provider and number.
const MAX_VERSIONS: usize = 16;

/// Bytes of a pointer in payloads: the processors that are sampled have 64 bits.
const POINTER_SIZE: u8 = 8;

/// The kinds of events of a session.
#[derive(Default)]
pub(super) struct EventKinds {
    /// By the index of the provider and the number of the event.
    kinds: HashMap<(usize, u16), Vec<Kind>>,
    hasher: RandomState,
}

/// The provider and the number of an event.
#[derive(Clone, Copy)]
pub(super) struct KindPlace<'a> {
    /// The index of the provider.
    pub(super) provider: usize,
    /// The name of the provider.
    pub(super) name: &'a str,
    /// The number of the event.
    pub(super) event: u16,
}

/// A kind of event.
#[derive(Clone, Copy)]
struct Kind {
    id: EventKindId,
    /// The hash of its description; `None` without one.
    description: Option<u64>,
    /// The fields that are known without the description, which has none.
    schema: Option<&'static Schema>,
}

impl Kind {
    /// Returns true unless the fields are known and end elsewhere than the payload.
    fn may_have(&self, payload: &[u8]) -> bool {
        self.schema.is_none_or(|schema| covers(schema, payload))
    }
}

fn covers(schema: &Schema, payload: &[u8]) -> bool {
    schema.fields(payload, POINTER_SIZE).cover_payload()
}

impl EventKinds {
    /// Returns the kind of an event, which is defined in the recording when it is new.
    ///
    /// Runtimes describe a kind with its first event. Later events have the number alone, which versions of
    /// an event share: of these, the newest is taken whose fields end where the payload does.
    pub(super) fn of(
        &mut self,
        recording: &mut RecordingWriter,
        place: KindPlace<'_>,
        description: Option<&[u8]>,
        payload: &[u8],
    ) -> Result<EventKindId, Error> {
        let kinds = self.kinds.entry((place.provider, place.event)).or_default();
        if let Some(description) = description {
            let hash = self.hasher.hash_one(description);
            if let Some(kind) = kinds.iter().find(|kind| kind.description == Some(hash)) {
                return Ok(kind.id);
            }
            if let Some(ParsedMetadata { metadata, .. }) = ParsedMetadata::of_definition(description) {
                let id = recording.define_as(&metadata)?;
                let schema = Schema::of_kind(&metadata).filter(|schema| schema.overrides(&metadata));
                if kinds.len() < MAX_VERSIONS {
                    kinds.push(Kind { id, description: Some(hash), schema });
                }
                return Ok(id);
            }
        }
        let known = kinds.iter().rev().find(|kind| kind.may_have(payload));
        if let Some(kind) = known.or_else(|| kinds.last().filter(|kind| kind.description.is_some())) {
            return Ok(kind.id);
        }
        // The kernel has lost the description.
        let number = place.event.into();
        let versions = Provider::from_name(place.name).map_or(&[][..], |of| Schema::versions(of, number));
        let schema = versions.iter().rev().find(|schema| covers(schema, payload));
        let version = schema.map_or(0, |schema| schema.version.into());
        let id = recording.define(&EventKind::new(place.name, number, "", &[]).with_version(version))?;
        if kinds.len() < MAX_VERSIONS {
            kinds.push(Kind { id, description: None, schema });
        }
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use linux_sampler::SamplerConfig;
    use nettrace::SliceReader;

    use super::*;

    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

    /// The description of an event without fields, as runtimes write it.
    fn description(provider: &str, event: u32, version: u32) -> Vec<u8> {
        let text = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let mut bytes = [text(provider), event.to_le_bytes().to_vec(), text("")].concat();
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend([version, 4, 0].iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    /// Asks for the kinds of these descriptions and payloads of one event, and returns the answers and the
    /// versions of the defined kinds.
    fn ask(name: &str, event: u16, asked: &[(Option<&[u8]>, &[u8])]) -> (Vec<EventKindId>, Vec<u32>) {
        let config = SamplerConfig::of_process(1);
        let mut recording = RecordingWriter::new(0, 0, Some(1), &config, "test").unwrap();
        let mut kinds = EventKinds::default();
        let place = KindPlace { provider: 0, name, event };
        let ids = asked
            .iter()
            .map(|(description, payload)| kinds.of(&mut recording, place, *description, payload).unwrap());
        let ids = ids.collect();
        recording.finish(1).unwrap();
        let mut events = SliceReader::new(recording.bytes()).unwrap();
        events.for_each(|_| {}).unwrap();
        let own = events.metadata().iter().filter(|kind| kind.provider() == name);
        (ids, own.map(nettrace::Metadata::version).collect())
    }

    #[test]
    fn versions_of_one_number_are_told_apart_by_their_payload() {
        let [one, two] = [1, 2].map(|version| description(RUNTIME, 143, version));
        // Method/LoadVerbose: 36 bytes, three empty texts, a number; version 2 has 8 bytes more.
        let [short, long] = [&[0; 44][..], &[0; 52][..]];
        let (ids, versions) = ask(
            RUNTIME,
            143,
            &[(Some(&one), short), (None, short), (Some(&two), long), (None, short), (None, long)],
        );
        assert_eq!(versions, [1, 2]);
        assert_eq!((ids[1], ids[3], ids[4]), (ids[0], ids[0], ids[2]));
        assert_ne!(ids[0], ids[2]);
    }

    #[test]
    fn a_kind_is_defined_once() {
        let one = description("Demo", 7, 3);
        let (ids, versions) = ask("Demo", 7, &[(Some(&one), b""), (Some(&one), b"x"), (None, b"yz")]);
        assert_eq!((versions, ids[1], ids[2]), (vec![3], ids[0], ids[0]));
    }

    #[test]
    fn a_kind_whose_description_was_lost_has_the_version_of_its_payload() {
        let (ids, versions) = ask(RUNTIME, 143, &[(None, &[0; 52]), (None, &[0; 52]), (None, &[0; 44])]);
        assert_eq!((versions, ids[0] == ids[1], ids[0] == ids[2]), (vec![2, 1], true, false));
        // Unknown to every version, or not the runtime's own: the bytes are kept as they are.
        assert_eq!(ask(RUNTIME, 143, &[(None, &[0; 3])]).1, [0]);
        assert_eq!(ask("Demo", 143, &[(None, &[0; 52])]).1, [0]);
        // A description that cannot be read says nothing.
        assert_eq!(ask(RUNTIME, 143, &[(Some(b"?"), &[0; 52])]).1, [2]);
    }
}
