use rakwire::codec::rabbit::Pack;

#[derive(Pack)]
struct Small(#[pack(max = 3)] u32);

fn main() {}
