use rakwire::codec::rabbit::{Pack, Unpack};

#[derive(Pack, Unpack)]
union Either {
    a: u32,
    b: f32,
}

fn main() {}
