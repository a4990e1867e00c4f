use rakwire::rabbit::Pack;

#[derive(Pack)]
enum Never {}

fn main() {}
