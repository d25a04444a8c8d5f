//! A simulated .NET diagnostic server: answers as a runtime does, replays recordings, misbehaves on request
