use rakwire::codec::rabbit::{Pack, Unpack};

#[derive(Pack, Unpack)]
struct Size(usize);

fn main() {}
