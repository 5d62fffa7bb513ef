//! The crate from outside: catalogue, downloads from a loopback server, packages by fake clients, small and
//! read-only disks.

mod catalogue;
#[cfg(unix)]
mod disks;
mod http;
#[cfg(unix)]
mod links;
#[cfg(unix)]
mod packages;
mod server;
mod store;
mod support;
