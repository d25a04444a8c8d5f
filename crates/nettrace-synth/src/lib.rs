//! Writes .NET EventPipe recordings of every version, block by block, to test readers with
