//! The .NET Diagnostic IPC protocol as bytes: messages encoded and decoded in both directions, without I/O
