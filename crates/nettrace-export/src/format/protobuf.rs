//! The messages that are written as protobuf, with the field numbers of their formats.

use prost::Message;

/// `perftools.profiles` of `profile.proto`.
#[cfg(feature = "pprof")]
pub(crate) mod pprof {
    use super::Message;

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub(crate) sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub(crate) sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub(crate) mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub(crate) location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub(crate) function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub(crate) string_table: Vec<String>,
        #[prost(int64, tag = "9")]
        pub(crate) time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub(crate) duration_nanos: i64,
        #[prost(message, optional, tag = "11")]
        pub(crate) period_type: Option<ValueType>,
        #[prost(int64, tag = "12")]
        pub(crate) period: i64,
        #[prost(int64, tag = "14")]
        pub(crate) default_sample_type: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct ValueType {
        #[prost(int64, tag = "1")]
        pub(crate) kind: i64,
        #[prost(int64, tag = "2")]
        pub(crate) unit: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub(crate) location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub(crate) value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub(crate) label: Vec<Label>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Label {
        #[prost(int64, tag = "1")]
        pub(crate) key: i64,
        #[prost(int64, tag = "2")]
        pub(crate) text: i64,
        #[prost(int64, tag = "3")]
        pub(crate) number: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Mapping {
        #[prost(uint64, tag = "1")]
        pub(crate) id: u64,
        #[prost(int64, tag = "5")]
        pub(crate) filename: i64,
        #[prost(bool, tag = "7")]
        pub(crate) has_functions: bool,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Location {
        #[prost(uint64, tag = "1")]
        pub(crate) id: u64,
        #[prost(uint64, tag = "2")]
        pub(crate) mapping_id: u64,
        #[prost(message, repeated, tag = "4")]
        pub(crate) line: Vec<Line>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Line {
        #[prost(uint64, tag = "1")]
        pub(crate) function_id: u64,
        #[prost(int64, tag = "2")]
        pub(crate) line: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Function {
        #[prost(uint64, tag = "1")]
        pub(crate) id: u64,
        #[prost(int64, tag = "2")]
        pub(crate) name: i64,
        #[prost(int64, tag = "3")]
        pub(crate) system_name: i64,
        #[prost(int64, tag = "4")]
        pub(crate) filename: i64,
    }
}

/// `perfetto.protos`: the parts of `TracePacket` that are used here.
#[cfg(feature = "perfetto")]
pub(super) mod perfetto {
    use super::Message;

    /// One packet of a trace; a trace is nothing but packets.
    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Trace {
        #[prost(message, repeated, tag = "1")]
        pub(crate) packet: Vec<Packet>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Packet {
        #[prost(uint64, optional, tag = "8")]
        pub(crate) timestamp: Option<u64>,
        #[prost(uint32, optional, tag = "10")]
        pub(crate) sequence_id: Option<u32>,
        #[prost(message, optional, tag = "11")]
        pub(crate) track_event: Option<TrackEvent>,
        #[prost(message, optional, tag = "12")]
        pub(crate) interned: Option<Interned>,
        #[prost(uint32, optional, tag = "13")]
        pub(crate) sequence_flags: Option<u32>,
        #[prost(message, optional, tag = "60")]
        pub(crate) track: Option<Track>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct TrackEvent {
        #[prost(message, repeated, tag = "4")]
        pub(crate) annotations: Vec<Annotation>,
        #[prost(int32, optional, tag = "9")]
        pub(crate) kind: Option<i32>,
        #[prost(uint64, optional, tag = "10")]
        pub(crate) name_iid: Option<u64>,
        #[prost(uint64, optional, tag = "11")]
        pub(crate) track_uuid: Option<u64>,
        #[prost(uint64, optional, tag = "34")]
        pub(crate) source_location_iid: Option<u64>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Annotation {
        #[prost(uint64, optional, tag = "3")]
        pub(crate) number: Option<u64>,
        #[prost(string, optional, tag = "10")]
        pub(crate) name: Option<String>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Interned {
        #[prost(message, repeated, tag = "2")]
        pub(crate) names: Vec<Name>,
        #[prost(message, repeated, tag = "4")]
        pub(crate) source_locations: Vec<SourceLocation>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct SourceLocation {
        #[prost(uint64, optional, tag = "1")]
        pub(crate) iid: Option<u64>,
        #[prost(string, optional, tag = "2")]
        pub(crate) file_name: Option<String>,
        #[prost(string, optional, tag = "3")]
        pub(crate) function_name: Option<String>,
        #[prost(uint32, optional, tag = "4")]
        pub(crate) line_number: Option<u32>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Name {
        #[prost(uint64, optional, tag = "1")]
        pub(crate) iid: Option<u64>,
        #[prost(string, optional, tag = "2")]
        pub(crate) name: Option<String>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Track {
        #[prost(uint64, optional, tag = "1")]
        pub(crate) uuid: Option<u64>,
        #[prost(message, optional, tag = "3")]
        pub(crate) process: Option<Process>,
        #[prost(message, optional, tag = "4")]
        pub(crate) thread: Option<Thread>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Process {
        #[prost(int32, optional, tag = "1")]
        pub(crate) pid: Option<i32>,
        #[prost(string, optional, tag = "6")]
        pub(crate) name: Option<String>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Thread {
        #[prost(int32, optional, tag = "1")]
        pub(crate) pid: Option<i32>,
        #[prost(int32, optional, tag = "2")]
        pub(crate) tid: Option<i32>,
        #[prost(string, optional, tag = "5")]
        pub(crate) name: Option<String>,
    }
}
