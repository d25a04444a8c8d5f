//! Tests of a simulated runtime with a client that has only dipc-transport and dipc-wire.

mod commands;
mod discovery;
mod endings;
mod faults;
mod plain_client;
mod ports;
mod requests;
mod sessions;
mod state;
mod streams;
mod versions;
