use rakwire::rabbit::Pack;

#[derive(Pack)]
struct Size(usize);

fn main() {}
