use rakwire::codec::rabbit::{Pack, Unpack};

#[derive(Pack, Unpack)]
struct Unknown(#[pack(width = 3)] u8);

#[derive(Pack, Unpack)]
struct Empty(#[pack()] u8);

#[derive(Pack, Unpack)]
struct Both(#[pack(bits = 3, max = 3)] u8);

#[derive(Pack, Unpack)]
struct Twice(#[pack(bits = 3)] #[pack(bits = 3)] u8);

#[derive(Pack, Unpack)]
#[pack(bits = 3)]
struct OnTheType(u8);

fn main() {}
