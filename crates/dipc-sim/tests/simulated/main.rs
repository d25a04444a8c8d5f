//! A simulated runtime as a client sees it, through nothing but dipc-transport and dipc-wire.

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
