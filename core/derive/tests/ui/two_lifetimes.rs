use rakwire::codec::rabbit::{Pack, Text, Unpack};

#[derive(Pack, Unpack)]
struct Names<'a, 'b> {
    first: Text<'a>,
    last: Text<'b>,
}

fn main() {}
