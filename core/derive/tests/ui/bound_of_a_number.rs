use rakwire::codec::rabbit::{Pack, Unpack};

#[derive(Pack, Unpack)]
struct Small(#[pack(max = 3)] u32);

fn main() {}
