use rakwire::codec::rabbit::Pack;

#[derive(Pack)]
struct None(#[pack(bits = 0)] u8);

#[derive(Pack)]
struct Many(#[pack(bits = 65)] u64);

#[derive(Pack)]
struct Wide(#[pack(bits = 9)] u8);

fn main() {}
