//! The bytes of the fields.

use std::vec::Vec;

use super::*;

const FIELD: ServerKeyField = ServerKeyField {
    mtu: 1492,
    requires_security: true,
    requires_identity: false,
    server: KnownServer { key: PublicKey([0xAA; 32]), next: Some(KeyHash([0xBB; 24])) },
};

const NEGOTIATED: Negotiated = Negotiated {
    server: Guid(0x1111_1111_1111_1111),
    client: Guid(0x2222_2222_2222_2222),
    cookie: 0x3333_3333,
    server_address: address::UNASSIGNED,
    mtu: 0x4444,
};

#[test]
fn a_key_field_has_the_bytes_of_the_document() {
    let bytes = FIELD.write();
    let expected: [&[u8]; 5] = [&[0x05, 0xD4], &[1], b"rws01", &[0xAA; 32], &[0xBB; 24]];
    assert_eq!(bytes[..], expected.concat());
    assert_eq!(ServerKeyField::read(&bytes), Some(FIELD));
    let plain = ServerKeyField { requires_security: false, requires_identity: true, ..FIELD };
    assert_eq!(plain.write()[2], 2);
    assert_eq!(ServerKeyField::read(&plain.write()), Some(plain));
    let none = ServerKeyField { server: KnownServer { next: None, ..FIELD.server }, ..FIELD };
    assert_eq!(none.write()[40..], [0; 24]);
    assert_eq!(ServerKeyField::read(&none.write()), Some(none));
    for at in 3..8 {
        let mut other = bytes;
        other[at] ^= 1;
        assert_eq!(ServerKeyField::read(&other), None);
    }
}

#[test]
fn the_prologue_has_the_bytes_of_the_document() {
    let prologue = Prologue::new(&FIELD.write(), &NEGOTIATED, Pattern::Xk);
    let mut field = FIELD.write();
    field[..2].fill(0);
    let unassigned = [4, 255, 255, 255, 255, 0, 0];
    let parts: [&[u8]; 8] = [
        b"rakwire secure 1",
        &[0x11; 8],
        &field,
        &[0x33; 4],
        &[2, 0, 0, b'r', b'w', b's', b'0', b'1'],
        &unassigned,
        &[0x44; 2],
        &[0x22; 8],
    ];
    assert_eq!(prologue.bytes(), parts.concat());
}

#[test]
fn every_negotiated_value_changes_the_prologue() {
    let address = |text: &str| text.parse().expect("an address");
    let changes = [
        (FIELD, Negotiated { server: Guid(9), ..NEGOTIATED }, Pattern::Nk),
        (FIELD, Negotiated { client: Guid(9), ..NEGOTIATED }, Pattern::Nk),
        (FIELD, Negotiated { cookie: 9, ..NEGOTIATED }, Pattern::Nk),
        (FIELD, Negotiated { mtu: 9, ..NEGOTIATED }, Pattern::Nk),
        (FIELD, Negotiated { server_address: address("192.0.2.1:1"), ..NEGOTIATED }, Pattern::Nk),
        (FIELD, Negotiated { server_address: address("[2001:db8::1%7]:1"), ..NEGOTIATED }, Pattern::Nk),
        (FIELD, NEGOTIATED, Pattern::Xk),
        (ServerKeyField { requires_security: false, ..FIELD }, NEGOTIATED, Pattern::Nk),
        (ServerKeyField { requires_identity: true, ..FIELD }, NEGOTIATED, Pattern::Nk),
        (
            ServerKeyField { server: KnownServer { next: None, ..FIELD.server }, ..FIELD },
            NEGOTIATED,
            Pattern::Nk,
        ),
        (FIELD, NEGOTIATED, Pattern::Nk),
    ];
    let all: Vec<Vec<u8>> = changes
        .map(|(key, said, pattern)| Prologue::new(&key.write(), &said, pattern).bytes().to_vec())
        .into();
    for (index, one) in all.iter().enumerate() {
        assert!(all.iter().skip(index + 1).all(|other| other != one), "change {index}");
    }
    for bit in 0..8 {
        let mut field = FIELD.write();
        field[2] ^= 1 << bit;
        let changed = Prologue::new(&field, &NEGOTIATED, Pattern::Nk);
        assert_ne!(changed.bytes(), all[10], "bit {bit} of the flags");
    }
    let other_mtu = ServerKeyField { mtu: 576, ..FIELD };
    assert_eq!(
        Prologue::new(&other_mtu.write(), &NEGOTIATED, Pattern::Nk).bytes(),
        all[10],
        "relays may lower it"
    );
}

#[test]
fn the_longest_address_fits() {
    let longest =
        Negotiated { server_address: "[2001:db8::1%7]:1".parse().expect("an address"), ..NEGOTIATED };
    assert_eq!(Prologue::new(&FIELD.write(), &longest, Pattern::Nk).bytes().len(), MAX_PROLOGUE);
    let payload = answer_payload(&longest.server_address, 0x0506);
    assert_eq!((payload[0], &payload[29..32]), (6, &[5, 6, 0][..]));
}

#[test]
fn downgrades_are_told_from_other_servers() {
    let versions = |first, announced| Versions { announced, first };
    let accepted = [6, 10, 11];
    assert!(!versions(11, 11).are_downgraded(&accepted));
    assert!(!versions(9, 10).are_downgraded(&accepted), "the server has said that it does not know 9");
    assert!(versions(11, 10).are_downgraded(&accepted), "it knows 11 well");
    assert!(versions(9, 9).are_downgraded(&accepted));
}
