use rakwire::codec::rabbit::{Pack, Unpack};

#[derive(Pack, Unpack)]
struct Half(#[pack(bits = 16)] f32);

fn main() {}
