//! Objects of the framework as people read them: the elements of collections, and objects that are one text.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Collections/Generic` (`List.cs`, `Dictionary.cs`,
//! `HashSet.cs`, `Queue.cs`), `System.Collections/src` (`Stack.cs`), `System.Collections.Concurrent`,
//! `System.Collections.Immutable`, `System.Private.CoreLib/src/System/Text/StringBuilder.cs`, `Version.cs`,
//! `System.Private.Uri/src/System/Uri.cs`, `System.Net.Primitives/src/System/Net/IPAddress.cs`; for 3.1
//! dotnet/corefx, with the names that differ below.

mod fields;
mod reader;
mod text;

use self::fields::Fields;
use self::reader::Reader;
use crate::heap::Heap;
use crate::heap::object::{MAX_VALUES, Value};
use crate::memory::address::{Address, TypeHandle};
use crate::types::field::ValueKind;

/// The beginning of the names of channels, whose items are in a collection.
const CHANNELS: &str = "System.Threading.Channels.";

/// The content of an object of a known type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum KnownContent {
    /// The elements of a collection, in its order.
    Elements {
        /// The first elements.
        elements: Vec<Value>,
        /// The number of all elements.
        count: u64,
    },
    /// The keys and values of a dictionary.
    Pairs {
        /// The first of them.
        pairs: Vec<(Value, Value)>,
        /// The number of all of them.
        count: u64,
    },
    /// A text.
    Text {
        /// The first characters.
        text: String,
        /// True if it is longer.
        is_cut: bool,
    },
    /// The value in a box: of a number, an enumeration or a structure as an object.
    Boxed(Value),
}

impl KnownContent {
    /// The content of a collection: its first elements, and the number of all.
    pub const fn elements(elements: Vec<Value>, count: u64) -> Self {
        Self::Elements { elements, count }
    }
}

impl Heap<'_> {
    /// Returns the content of a collection, of an object that people write as text, or of a box: at most
    /// `most` elements or characters. `None` for other objects, and if the memory lacks it.
    ///
    /// Collections are `List`, `Dictionary`, `HashSet`, `Queue`, `Stack`, `ConcurrentDictionary`,
    /// `ConcurrentQueue`, `ImmutableList`, `ImmutableDictionary` and channels, with what they contain; texts
    /// are of `StringBuilder`, `Uri`, `Version` and `IPAddress`, and the messages of exceptions.
    ///
    /// ```no_run
    /// use clr_dump::KnownContent;
    ///
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// # let object = clr_dump::Address::new(0x7f00_1000_2000);
    /// match dump.heap().known_content(object, 10) {
    ///     Some(KnownContent::Pairs { pairs, count }) => println!("{count} pairs, such as {:?}", pairs.first()),
    ///     Some(other) => println!("{other:?}"),
    ///     None => println!("another object"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn known_content(self, object: Address, most: u32) -> Option<KnownContent> {
        let type_handle = self.type_of(object)?;
        if let Some(value) = self.boxed(object, type_handle) {
            return Some(KnownContent::Boxed(value));
        }
        let name = self.dump.types().name(type_handle)?;
        let own = name.split('[').next().unwrap_or_default();
        let mut reader = Reader::new(self, most);
        let read = match own {
            "System.Collections.Generic.List`1" => Reader::list,
            "System.Collections.Generic.Stack`1" => Reader::stack,
            // The queue of channels is like that of programs.
            "System.Collections.Generic.Queue`1" | "System.Collections.Generic.Deque`1" => Reader::queue,
            "System.Collections.Concurrent.SingleProducerSingleConsumerQueue`1" => Reader::one_reader_queue,
            "System.Collections.Generic.Dictionary`2" => Reader::dictionary,
            "System.Collections.Generic.HashSet`1" => Reader::hash_set,
            "System.Collections.Concurrent.ConcurrentDictionary`2" => Reader::concurrent_dictionary,
            "System.Collections.Concurrent.ConcurrentQueue`1" => Reader::concurrent_queue,
            "System.Collections.Immutable.ImmutableList`1" => Reader::immutable_list,
            "System.Collections.Immutable.ImmutableDictionary`2" => Reader::immutable_dictionary,
            _ if own.starts_with(CHANNELS) => Reader::channel,
            _ => return self.known_text(object, type_handle, own, most),
        };
        read(&mut reader, &Fields::read(self, object)?)
    }

    /// Returns the value in a box; `None` of other objects.
    fn boxed(self, object: Address, type_handle: TypeHandle) -> Option<Value> {
        // Its types state no kind of their values.
        if self.dump.runtime().is_native_aot() {
            return None;
        }
        let kind = self.dump.types().value_kind(type_handle).ok()?;
        let value = || self.value_at(kind, Some(type_handle), object.at(8), 16, &mut MAX_VALUES.clone());
        (kind != ValueKind::REFERENCE).then(value)
    }
}
