use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const FULL: &[u8] =
    b"MCPE;Dedicated Server;594;1.20.13;0;10;13253860892328930865;Bedrock level;Survival;1;19132;19133;";

fn full() -> Advertisement<'static> {
    Advertisement {
        edition: Edition::Bedrock,
        motd: "Dedicated Server".into(),
        protocol: 594,
        version: "1.20.13".into(),
        players: 0,
        max_players: 10,
        server: Some(Guid(13_253_860_892_328_930_865)),
        second_line: "Bedrock level".into(),
        game_mode: "Survival".into(),
        game_mode_number: Some(1),
        port_v4: Some(19132),
        port_v6: Some(19133),
    }
}

#[test]
fn all_fields() {
    let mut buffer = [0; 399];
    assert_eq!(Advertisement::parse(FULL), Ok(full()));
    assert_eq!(full().write(PongFraming::Raw, &mut buffer), Ok(FULL));
    let data = full().write(PongFraming::Prefixed, &mut buffer).expect("short enough");
    assert_eq!(data, [&(FULL.len() as u16).to_be_bytes(), FULL].concat());
    assert_eq!(PongFraming::of(data), PongFraming::Prefixed);
    assert_eq!(PongFraming::Prefixed.unframe(data), Ok(FULL));
}

#[test]
fn missing_fields_at_the_end_are_absent() {
    let six = b"MCPE;old;20;0.11;1;5";
    let old = Advertisement::parse(six).expect("six fields");
    assert_eq!((old.players, old.max_players, old.server, old.port_v6), (1, 5, None, None));
    assert!(old.second_line.is_empty());
    // With the last semicolon and without it.
    assert_eq!(Advertisement::parse(b"MCPE;old;20;0.11;1;5;"), Ok(old));
    let enough = b"MCPE;Dedicated Server;594;1.20.13;0;1".len();
    for end in 0..FULL.len() {
        assert_eq!(Advertisement::parse(&FULL[..end]).is_ok(), end >= enough, "{end}");
    }
}

#[test]
fn empty_and_additional_fields() {
    let parsed = Advertisement::parse(b"MCPE;;1;;0;0;;;;;;19133;0;what comes next").expect("twelve fields");
    let expected = Advertisement { protocol: 1, port_v6: Some(19133), ..Advertisement::default() };
    assert_eq!(parsed, expected);
    let mut buffer = [0; 64];
    assert_eq!(expected.write(PongFraming::Raw, &mut buffer), Ok(&b"MCPE;;1;;0;0;;;;;;19133;"[..]));
}

#[test]
fn signed_guids() {
    let parsed = Advertisement::parse(b"MCPE;a;1;1;0;0;-2;").expect("seven fields");
    assert_eq!(parsed.server, Some(Guid(u64::MAX - 1)));
    assert_eq!(Advertisement::parse(b"MCPE;a;1;1;0;0;--2;"), Err(WireError::BadValue));
}

#[test]
fn what_is_no_advertisement_is_refused() {
    let refused: [&[u8]; 7] = [
        b"MCPX;a;1;1;0;0;",
        b"MCPE;\xFF;1;1;0;0;",
        b"MCPE;a;one;1;0;0;",
        b"MCPE;a;1;1;;0;",
        b"MCPE;a;1;1;-1;0;",
        b"MCPE;a;1;1;0;99999999999;",
        b"MCPE;a;1;1;0;0;1;;;;65536;",
    ];
    for text in refused {
        assert_eq!(Advertisement::parse(text), Err(WireError::BadValue), "{}", text.escape_ascii());
    }
    assert_eq!(Advertisement::parse(b""), Err(WireError::Truncated));
    assert_eq!(Advertisement::parse(b"MCPE;a;1;1;0"), Err(WireError::Truncated));
    assert_eq!(Advertisement::parse(&[b';'; 400]), Err(WireError::BadLength));
}

#[test]
fn semicolons_and_backslashes() {
    let parsed = Advertisement::parse(br"MCPE;a\;b\c\\;d;1;1;0;0;").expect("six fields");
    assert_eq!(parsed.motd, Text::from(r"a;b\c\;d"));
    assert_eq!(format!("{}", parsed.motd), r"a;b\c\;d");
    let mut buffer = [0; 64];
    let swallowed = Advertisement { motd: r"a\".into(), ..Advertisement::default() };
    assert_eq!(swallowed.write(PongFraming::Raw, &mut buffer), Err(WireError::BadValue));
}

#[test]
fn a_pong_is_the_limit() {
    let text = "x".repeat(400);
    let head = b"MCPE;;0;;0;0;".len();
    let motd = |length: usize| Advertisement { motd: text[..length].into(), ..Advertisement::default() };
    let mut buffer = [0; 500];
    for (framing, room) in [(PongFraming::Raw, 399 - head), (PongFraming::Prefixed, 397 - head)] {
        assert_eq!(motd(room).write(framing, &mut buffer).map(<[u8]>::len), Ok(399));
        assert_eq!(motd(room + 1).write(framing, &mut buffer), Err(WireError::BadLength));
        assert_eq!(motd(room).write(framing, &mut buffer[..398]), Err(WireError::NoRoom));
        assert_eq!(framing.frame(&[b'x'; 400], &mut buffer), Err(WireError::BadLength));
        assert_eq!(framing.unframe(&[0; 400]), Err(WireError::BadLength));
    }
}

#[test]
fn lengths_are_not_trusted() {
    assert_eq!(PongFraming::Prefixed.unframe(&[0, 3, b'h', b'i']), Err(WireError::Truncated));
    assert_eq!(PongFraming::Prefixed.unframe(&[0]), Err(WireError::Truncated));
    assert_eq!(PongFraming::Prefixed.unframe(&[0, 1, b'h', b'i']), Ok(&b"h"[..]));
    assert_eq!(PongFraming::of(b"MCPE;"), PongFraming::Raw);
    assert_eq!(PongFraming::of(b""), PongFraming::Raw);
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![Just(';'), Just('\\'), Just('§'), proptest::char::range('a', 'z')],
        0..16,
    )
    .prop_map(|chars| chars.into_iter().collect::<String>().trim_end_matches('\\').into())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back(
        texts in [text(), text(), text(), text()],
        numbers: [u32; 4],
        server: Option<u64>,
        ports: [Option<u16>; 2],
        education: bool,
    ) {
        let [motd, version, second_line, game_mode] = &texts;
        let [port_v4, port_v6] = ports;
        let written = Advertisement {
            edition: if education { Edition::Education } else { Edition::Bedrock },
            motd: motd.as_str().into(),
            protocol: numbers[0],
            version: version.as_str().into(),
            players: numbers[1],
            max_players: numbers[2],
            server: server.map(Guid),
            second_line: second_line.as_str().into(),
            game_mode: game_mode.as_str().into(),
            game_mode_number: port_v4.map(|_| numbers[3]),
            port_v4,
            port_v6,
        };
        let (mut buffer, mut again) = ([0; 399], [0; 399]);
        let data = written.write(PongFraming::Prefixed, &mut buffer).expect("short enough");
        let read = Advertisement::parse(PongFraming::Prefixed.unframe(data)?)?;
        prop_assert_eq!(&read, &written);
        prop_assert_eq!(read.write(PongFraming::Prefixed, &mut again)?, data);
    }

    #[test]
    fn nothing_panics_on_any_text(text in "(MCPE;)?[;\\\\a0-9§-]{0,60}", bytes: Vec<u8>) {
        if let Ok(read) = Advertisement::parse(text.as_bytes()) {
            let _ = read.write(PongFraming::Raw, &mut [0; 399]);
        }
        let _ = Advertisement::parse(&bytes);
        let _ = PongFraming::of(&bytes).unframe(&bytes);
    }
}
