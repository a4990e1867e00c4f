//! The encoding of the mesh message.

use rakwire::raknet::Guid;
use rakwire_plugins::mesh::{Announcement, Epoch, MAX_LENGTH, MAX_PEERS, Rank};
use serde_json::Value;

fn number(value: &Value) -> i64 {
    value.as_i64().expect("a number")
}

fn announcement(vector: &Value) -> Announcement<MAX_PEERS> {
    let joined = vector["founder"].as_i64().map(|founder| {
        let epoch = Epoch { founder: Guid(founder.cast_unsigned()), now: number(&vector["now"]) };
        (epoch, number(&vector["joined"]))
    });
    let rank = |value: &Value| Rank {
        guid: Guid(number(&value["guid"]).cast_unsigned()),
        joined: number(&value["joined"]),
    };
    let neighbours = vector["neighbours"].as_array().expect("a list").iter().map(rank).collect();
    Announcement { joined, neighbours }
}

#[test]
fn announcement_encoding_matches_the_test_vectors() {
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../../vectors/mesh.json")).expect("valid JSON");
    assert_eq!(vectors.len(), 3);
    for vector in &vectors {
        let hex = vector["hex"].as_str().expect("a text");
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        let (announcement, mut buffer) = (announcement(vector), [0; MAX_LENGTH]);
        assert_eq!(announcement.encode(&mut buffer), Ok(&bytes[..]));
        assert_eq!(Announcement::decode(&bytes), Ok(announcement));
        for length in 0..bytes.len() {
            assert!(Announcement::<MAX_PEERS>::decode(&bytes[..length]).is_err(), "cut at {length}");
        }
    }
}

#[test]
fn the_longest_announcement_fits() {
    let rank = Rank { joined: i64::MIN, guid: Guid(1) };
    let neighbours = std::iter::repeat_n(rank, MAX_PEERS).collect();
    let longest = Announcement::<MAX_PEERS> { joined: None, neighbours };
    let mut buffer = [0; MAX_LENGTH];
    let bytes = longest.encode(&mut buffer).expect("enough space");
    assert_eq!(bytes.len(), MAX_LENGTH);
    assert!(Announcement::<1>::decode(bytes).is_err(), "too many peers for a mesh of one");
}
