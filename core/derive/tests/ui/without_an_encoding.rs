use rakwire::codec::rabbit::Pack;

#[derive(Pack)]
struct Size(usize);

fn main() {}
