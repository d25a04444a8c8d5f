//! Zero-copy reader of .NET EventPipe recordings (nettrace and netperf), from a file, a stream or pushed bytes
