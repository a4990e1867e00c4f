use rakwire::codec::rabbit::{Pack, Text};

#[derive(Pack)]
struct Names<'a, 'b> {
    first: Text<'a>,
    last: Text<'b>,
}

fn main() {}
