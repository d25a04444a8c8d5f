//! Buffers that tests write.

use nettrace_synth::Bytes;

use super::layout::{AsyncLayout, LengthWidth};

/// The metadata of a session, with an empty list of events.
pub(super) const METADATA: &[u8] = &[0x80, 0x94, 0xEB, 0xDC, 0x03, 1, 2, 0x80, 0x20, 32, 0];

/// A number in groups of seven bits.
pub(super) fn number(value: u64) -> Vec<u8> {
    let mut bytes = Bytes::new();
    bytes.var_u64(value);
    bytes.into_vec()
}

/// A buffer that is being written.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    thread: u64,
    start: u64,
    end: u64,
    count: u32,
    events: Vec<u8>,
}

impl Buffer {
    pub(super) fn new(thread: u64, start: u64) -> Self {
        Self { thread, start, end: start, count: 0, events: Vec::new() }
    }

    /// Adds an event with the length that it has without metadata; none if it is not known.
    pub(super) fn event(self, id: u8, delta: u64, fields: &[u8]) -> Self {
        match AsyncLayout::default().width(id) {
            Some(LengthWidth::Byte) => self.byte_event(id, delta, fields),
            Some(LengthWidth::Word) => self.wide_event(id, delta, fields),
            _ => self.begin(id, delta).raw(fields),
        }
    }

    pub(super) fn byte_event(self, id: u8, delta: u64, fields: &[u8]) -> Self {
        self.begin(id, delta).raw(&[u8::try_from(fields.len()).unwrap()]).raw(fields)
    }

    pub(super) fn wide_event(self, id: u8, delta: u64, fields: &[u8]) -> Self {
        self.begin(id, delta).raw(&u16::try_from(fields.len()).unwrap().to_le_bytes()).raw(fields)
    }

    /// Adds addresses, the innermost first.
    pub(super) fn runtime_callstack(self, id: u8, delta: u64, dispatcher: u64, methods: &[u64]) -> Self {
        let parent = if id == 6 { number(77) } else { Vec::new() };
        let fields = [
            vec![0, 0, u8::try_from(methods.len()).unwrap()],
            parent,
            number(dispatcher),
            frames(methods, false),
        ];
        self.event(id, delta, &fields.concat())
    }

    /// Adds ids of methods, the innermost first, with the states 0, -1, 2, -3, …
    pub(super) fn state_machine_callstack(
        self,
        id: u8,
        delta: u64,
        dispatcher: u64,
        methods: &[u64],
    ) -> Self {
        let fields =
            [vec![0, 0, u8::try_from(methods.len()).unwrap()], number(dispatcher), frames(methods, true)];
        self.event(id, delta, &fields.concat())
    }

    fn begin(mut self, id: u8, delta: u64) -> Self {
        self.count += 1;
        self.end += delta;
        self.events.push(id);
        self.events.extend(number(delta));
        self
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.events.extend(bytes);
        self
    }

    /// The payload of the event with this buffer.
    pub(super) fn payload(&self) -> Vec<u8> {
        let size = u32::try_from(37 + self.events.len()).unwrap();
        let mut payload = size.to_le_bytes().to_vec();
        payload.push(1);
        payload.extend(size.to_le_bytes());
        payload.extend(3u32.to_le_bytes());
        payload.extend(self.thread.to_le_bytes());
        payload.extend(self.count.to_le_bytes());
        payload.extend(self.start.to_le_bytes());
        payload.extend(self.end.to_le_bytes());
        payload.extend(&self.events);
        payload
    }
}

fn frames(methods: &[u64], has_states: bool) -> Vec<u8> {
    let mut bytes = Bytes::new();
    for (index, method) in methods.iter().enumerate() {
        match index.checked_sub(1) {
            None => bytes.var_u64(*method),
            Some(before) => bytes.var_i64(method.wrapping_sub(methods[before]).cast_signed()),
        };
        if has_states {
            let state = i64::try_from(index).unwrap();
            bytes.var_i64(if index % 2 == 0 { state } else { -state });
        }
    }
    bytes.into_vec()
}
