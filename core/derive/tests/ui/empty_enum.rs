use rakwire::codec::rabbit::Pack;

#[derive(Pack)]
enum Never {}

fn main() {}
