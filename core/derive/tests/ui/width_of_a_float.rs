use rakwire::codec::rabbit::Pack;

#[derive(Pack)]
struct Half(#[pack(bits = 16)] f32);

fn main() {}
