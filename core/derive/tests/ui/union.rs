use rakwire::codec::rabbit::Pack;

#[derive(Pack)]
union Either {
    a: u32,
    b: f32,
}

fn main() {}
