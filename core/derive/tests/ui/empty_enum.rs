use rakwire::codec::rabbit::{Pack, Unpack};

#[derive(Pack, Unpack)]
enum Never {}

fn main() {}
