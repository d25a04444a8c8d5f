//! The settings of a session that streams a heap dump.

/// The settings of the runtime's provider for a heap dump: [`request`].
///
/// With feature `dipc-wire` it converts into `dipc_wire::FilteredProviderConfig`, which is the argument of
/// `dipc_client::SessionConfig::new`: see the example `heap` of the crate dipc-client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpRequest {
    /// The provider's name.
    pub provider: &'static str,
    /// The keywords GC, Type, GCHeapDump, GCHeapCollect, which makes the runtime collect, and
    /// GCHeapAndTypeNames.
    pub keywords: u64,
    /// The level: informational.
    pub level: u32,
    /// The rundown keyword that suffices: Loader, for the paths of modules. The runtime's default lists all
    /// methods, too.
    pub rundown_keyword: u64,
}

/// Returns the settings of a session for a heap dump.
///
/// Stacks are not needed. The runtime collects while it starts the session, and sends the heap faster than a
/// client reads it: request that it blocks while its buffer is full (.NET 10), or else a buffer that holds
/// the whole dump. The dump is complete when
/// [`HeapGraphBuilder::has_ended`](crate::HeapGraphBuilder::has_ended); then the session can be stopped. If
/// the runtime cannot block, stop at once: .NET 3.1 sends nothing before.
///
/// ```
/// let request = gcdump::request();
/// let provider = format!("{}:{:#x}:{}", request.provider, request.keywords, request.level);
/// assert_eq!(provider, "Microsoft-Windows-DotNETRuntime:0x1980001:4");
/// ```
///
/// # Source
/// dotnet-gcdump 10, `DotNetHeapInfo`; the keywords are defined in the runtime's manifest, `ClrEtwAll.man`.
pub const fn request() -> DumpRequest {
    DumpRequest {
        provider: "Microsoft-Windows-DotNETRuntime",
        keywords: 0x198_0001,
        level: 4,
        rundown_keyword: 0x8,
    }
}

#[cfg(feature = "dipc-wire")]
#[cfg_attr(docsrs, doc(cfg(feature = "dipc-wire")))]
impl From<DumpRequest> for dipc_wire::ProviderConfig {
    fn from(request: DumpRequest) -> Self {
        Self {
            keywords: request.keywords.into(),
            level: request.level.into(),
            name: request.provider.to_owned(),
            arguments: String::new(),
        }
    }
}

#[cfg(feature = "dipc-wire")]
#[cfg_attr(docsrs, doc(cfg(feature = "dipc-wire")))]
impl From<DumpRequest> for dipc_wire::FilteredProviderConfig {
    fn from(request: DumpRequest) -> Self {
        dipc_wire::ProviderConfig::from(request).into()
    }
}
