//! The bytes of messages, and the paths that they may contain.

use std::path::{Component, Path};

use proptest::prelude::*;
use rakwire_plugins::files::{
    Entries, Entry, MAX_PATH, Page, PageWriter, Reason, Reply, Request, Totals, check_path,
};
use serde_json::Value;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal digits"))
        .collect()
}

/// Writes the page of the vectors, and returns its length.
fn page(buffer: &mut [u8]) -> usize {
    let totals = Totals { files: 11, bytes: 0x1_2345 };
    let page = Page { number: 5, totals, chunk: 1_024, window: 8, first: 0, entries: Entries::NONE };
    let mut writer = PageWriter::new(buffer, &page).expect("enough space");
    assert!(writer.is_empty());
    writer.push(&Entry { path: b"a", size: 2, digest: [7; 32] }).expect("enough space");
    writer.push(&Entry { path: b"b/c", size: 0x1_2343, digest: [0xFE; 32] }).expect("enough space");
    writer.len()
}

#[test]
fn message_encoding_matches_the_test_vectors() {
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../../vectors/files.json")).expect("valid JSON");
    assert_eq!(vectors.len(), 9);
    for vector in vectors {
        let number = |name: &str| vector[name].as_u64().unwrap_or_default();
        let expected = bytes(vector["hex"].as_str().unwrap_or_default());
        let payload = bytes(vector["bytes"].as_str().unwrap_or_default());
        let (id, first) = (number("number") as u32, number("first") as u32);
        let mut buffer = [0; 256];
        let mut request = |request: Request| {
            assert_eq!(Request::decode(&expected), Some(request));
            request.encode(&mut buffer)
        };
        let length = match vector["message"].as_str().unwrap_or_default() {
            "list" => request(Request::List { number: id, first, count: number("count") as u16 }),
            "read" => request(Request::Read {
                number: id,
                file: number("file") as u32,
                offset: number("offset"),
                length: number("length") as u32,
            }),
            "find patch" => {
                request(Request::FindPatch { number: id, file: number("file") as u32, base: [0xB5; 16] })
            }
            "done" => request(Request::Done),
            "receiver failed" => request(Request::Failed(Reason::Cancelled)),
            "page" => {
                let Some(decoded @ Reply::Page(_)) = Reply::decode(&expected) else { panic!("not a page") };
                let length = page(&mut buffer);
                assert_eq!(decoded.encode(&mut [0; 256]), Some(length));
                Some(length)
            }
            "data" => Reply::Data { number: id, bytes: &payload }.encode(&mut buffer),
            "patch" => {
                let reply = Reply::Patch { number: id, patch: number("patch") as u32, size: number("size") };
                assert_eq!(Reply::decode(&expected), Some(reply));
                reply.encode(&mut buffer)
            }
            _ => Reply::Failed(Reason::BadDigest).encode(&mut buffer),
        };
        assert_eq!(&buffer[..length.expect("enough space")], expected);
    }
}

#[test]
fn paths_with_special_meaning_are_refused() {
    let long = format!("{}/{}", "a".repeat(127), "b".repeat(127));
    assert_eq!(long.len(), MAX_PATH);
    for path in ["a", "a b", "a/b/c", ".hidden", "...", "a..b", "\u{e9}/\u{1f3bf}", &long] {
        assert_eq!(check_path(path.as_bytes()), Some(path));
    }
    let longer = format!("{long}c");
    let bad = [
        "", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/../b", "../a", "a\\b", "C:a", "a:b", "a\0",
        "a\nb", "a\u{85}", "\u{7f}", &longer,
    ];
    for path in bad {
        assert_eq!(check_path(path.as_bytes()), None, "{path:?}");
    }
    assert_eq!(check_path(b"a\xff"), None);
}

proptest! {
    /// An allowed path never leaves the directory to which it is appended.
    #[test]
    fn paths_stay_in_their_directory(path in "[a./\\\\:b\u{0}]{0,12}") {
        if let Some(path) = check_path(path.as_bytes()) {
            prop_assert!(Path::new(path).components().all(|part| matches!(part, Component::Normal(_))));
        }
    }

    /// Every message decodes to itself, and is encoded only into a buffer that is long enough.
    #[test]
    fn messages_round_trip(a: u32, b: u32, c: u64, d: u16, code: u8, payload in prop::collection::vec(any::<u8>(), 0..70)) {
        let reason = |code| match Reply::decode(&[129, 3, code]) {
            Some(Reply::Failed(reason)) => reason,
            other => panic!("{other:?}"),
        };
        for request in [
            Request::List { number: a, first: b, count: d },
            Request::Read { number: a, file: b, offset: c, length: d.into() },
            Request::FindPatch { number: a, file: b, base: c.to_be_bytes().repeat(2).try_into().expect("16 bytes") },
            Request::Done,
            Request::Failed(reason(code)),
        ] {
            let mut buffer = [0; 64];
            let length = request.encode(&mut buffer).expect("enough space");
            prop_assert_eq!(Request::decode(&buffer[..length]), Some(request));
            prop_assert_eq!(Request::decode(&buffer[..length - 1]), None);
            prop_assert_eq!(request.encode(&mut buffer[..length - 1]), None);
        }
        let patch = Reply::Patch { number: a, patch: b, size: c };
        for reply in [Reply::Data { number: a, bytes: &payload }, patch, Reply::Failed(reason(code))] {
            let mut buffer = [0; 128];
            let length = reply.encode(&mut buffer).expect("enough space");
            prop_assert_eq!(Reply::decode(&buffer[..length]), Some(reply));
            prop_assert_eq!(reply.encode(&mut buffer[..length - 1]), None);
        }
    }

    /// A page decodes to its entries; a truncated page does not decode.
    #[test]
    fn pages_round_trip(paths in prop::collection::vec("[a-z/]{1,20}", 0..6), cut in 1_usize..40) {
        let mut buffer = [0; 512];
        let totals = Totals { files: 6, bytes: 60 };
        let page = Page { number: 1, totals, chunk: 2, window: 3, first: 4, entries: Entries::NONE };
        let mut writer = PageWriter::new(&mut buffer, &page).expect("enough space");
        for (size, path) in (0..).zip(&paths) {
            writer.push(&Entry { path: path.as_bytes(), size, digest: [5; 32] }).expect("enough space");
        }
        let length = writer.len();
        let Some(Reply::Page(decoded)) = Reply::decode(&buffer[..length]) else { panic!("not a page") };
        prop_assert!(decoded.entries.map(|entry| entry.path.to_vec()).eq(paths.iter().map(|path| path.clone().into_bytes())));
        if !paths.is_empty() {
            prop_assert_eq!(Reply::decode(&buffer[..length - cut]), None);
        }
    }
}
