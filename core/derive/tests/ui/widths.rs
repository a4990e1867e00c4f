use rakwire::codec::rabbit::{Pack, Unpack};

#[derive(Pack, Unpack)]
struct None(#[pack(bits = 0)] u8);

#[derive(Pack, Unpack)]
struct Many(#[pack(bits = 65)] u64);

#[derive(Pack, Unpack)]
struct Wide(#[pack(bits = 9)] u8);

fn main() {}
