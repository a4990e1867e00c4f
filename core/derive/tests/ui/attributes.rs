use rakwire::codec::rabbit::Pack;

#[derive(Pack)]
struct Unknown(#[pack(width = 3)] u8);

#[derive(Pack)]
struct Empty(#[pack()] u8);

#[derive(Pack)]
struct Both(#[pack(bits = 3, max = 3)] u8);

#[derive(Pack)]
struct Twice(#[pack(bits = 3)] #[pack(bits = 3)] u8);

#[derive(Pack)]
#[pack(bits = 3)]
struct OnTheType(u8);

fn main() {}
