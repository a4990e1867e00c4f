//! The settings of HTTP/3 and the request for a session, as the drafts of WebTransport over HTTP/3 have them: browsers and
//! libraries follow different ones, which name the same things differently.

use bytes::{Buf, BufMut, BytesMut};
use quinn::RecvStream;
use tokio::io::{AsyncRead, AsyncReadExt};
use web_transport_proto::{
    ConnectError, ConnectRequest, Frame, Setting, Settings, SettingsError, StreamUni, VarInt,
};

/// `SETTINGS_WT_MAX_SESSIONS` of drafts 13 and 14, which Safari 26 looks for.
const WT_MAX_SESSIONS: Setting = Setting(VarInt::from_u32(0x14e9_cd29));
/// `SETTINGS_WT_ENABLED` of drafts 15 and 16.
const WT_ENABLED: Setting = Setting(VarInt::from_u32(0x2c7c_f000));
/// The bytes of a request, which the library bounds so when it has decoded them.
const LONGEST_REQUEST: u64 = 16 * 1024;

/// `:protocol` as the name of a field that is in no table of QPACK: without and with Huffman's code (RFC 9204, section 4.5.6),
/// from the second byte on, since a bit of the first one says only that proxies must not compress it.
const NAMES: [(u8, &[u8]); 2] = [(0x27, b"\x02:protocol"), (0x2f, b"\x00\xb9\x5d\x87\x49\xc8\x7a\x3f")];
const NEVER_COMPRESSED: u8 = 0x10;
/// `webtransport-h3`, the token of draft 15 and later, in both codes.
const TOKENS: [&[u8]; 2] = [b"\x0fwebtransport-h3", b"\x8b\xf0\x58\xd3\x60\xea\x45\x67\xb1\x2b\x4e\xcf"];
/// `webtransport`, the token before, which is all that the library knows.
const OLDER_TOKEN: &[u8] = b"\x0cwebtransport";

/// The relay's settings: WebTransport in the words of every draft that a client may follow, with one session for a connection.
pub(super) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.enable_webtransport(1);
    for setting in [WT_MAX_SESSIONS, WT_ENABLED] {
        settings.insert(setting, VarInt::from_u32(1));
    }
    settings
}

/// Whether a client takes datagrams of HTTP/3 (RFC 9297, section 2.1.1). Its other settings say nothing: by draft 16 a client
/// asks for sessions without announcing them.
pub(super) fn takes_datagrams(settings: &Settings) -> bool {
    let one = VarInt::from_u32(1);
    [Setting::ENABLE_DATAGRAM, Setting::ENABLE_DATAGRAM_DEPRECATED]
        .iter()
        .any(|setting| settings.get(setting) == Some(&one))
}

/// Reads the settings of a client, if they are on this stream. The stream is kept open if it is of another kind: none of HTTP/3
/// has to be read before there are settings, and those of QPACK may not be closed (RFC 9204, section 4.2). One that ends before its
/// kind is known means nothing (RFC 9114, section 6.2).
pub(super) async fn read_settings(mut stream: RecvStream) -> Result<(RecvStream, Settings), SettingsError> {
    let kind = VarInt::read(&mut stream).await.map(StreamUni);
    if kind.as_ref().is_ok_and(|kind| *kind == StreamUni::CONTROL) {
        // The library reads the kind again.
        let settings = Settings::read(&mut AsyncReadExt::chain(&b"\0"[..], &mut stream)).await?;
        return Ok((stream, settings));
    }
    if let Ok(kind @ StreamUni::PUSH) = kind {
        // Only servers may open one (RFC 9114, section 6.2.2).
        return Err(SettingsError::UnexpectedStreamType(kind));
    }
    std::future::pending().await
}

/// Reads the request for a session, with the token of any draft.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<ConnectRequest, ConnectError> {
    loop {
        let kind = Frame(varint(stream).await?);
        let len = varint(stream).await?.into_inner();
        if len > LONGEST_REQUEST {
            return Err(ConnectError::FrameTooLarge);
        }
        let mut payload = Vec::new();
        stream.take(len).read_to_end(&mut payload).await?;
        if (payload.len() as u64) < len {
            return Err(ConnectError::UnexpectedEnd);
        }
        // Frames of reserved kinds mean nothing (RFC 9114, section 7.2.8).
        if !kind.is_grease() {
            return decode(kind, &payload);
        }
    }
}

async fn varint(stream: &mut (impl AsyncRead + Unpin)) -> Result<VarInt, ConnectError> {
    VarInt::read(stream).await.map_err(|_| ConnectError::UnexpectedEnd)
}

fn decode(kind: Frame, payload: &[u8]) -> Result<ConnectRequest, ConnectError> {
    let (before, after) = around_newer_token(payload).unwrap_or((payload, &[]));
    let token = if before.len() == payload.len() { &[] } else { OLDER_TOKEN };
    let mut frame = BytesMut::new();
    kind.encode(&mut frame);
    let len = before.len() + token.len() + after.len();
    VarInt::try_from(len).map_err(|_| ConnectError::FrameTooLarge)?.encode(&mut frame);
    [before, token, after].into_iter().for_each(|part| frame.put_slice(part));
    ConnectRequest::decode(&mut frame)
}

/// What stands before and behind the newer token.
fn around_newer_token(fields: &[u8]) -> Option<(&[u8], &[u8])> {
    (0..fields.len()).find_map(|at| {
        let (before, mut rest) = fields.split_at(at);
        let first = rest.try_get_u8().ok()? & !NEVER_COMPRESSED;
        let name = NAMES.iter().find(|(is_first, name)| *is_first == first && rest.starts_with(name))?.1;
        let value = rest.get(name.len()..)?;
        let token = TOKENS.iter().find(|token| value.starts_with(token))?;
        let named = before.len() + 1 + name.len();
        Some((fields.get(..named)?, fields.get(named + token.len()..)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &[u8] = b"\x51\x0b/wt?token=1";
    const AUTHORITY: &[u8] = b"\x50\x07a.b:443";
    /// The field section's prefix, `:method` CONNECT and `:scheme` https of the static table.
    const BEGIN: &[u8] = b"\x00\x00\xcf\xd7";

    fn request(first: u8, name: &[u8], token: &[u8]) -> Vec<u8> {
        let fields = [BEGIN, AUTHORITY, PATH, &[first], name, token].concat();
        [&[1, u8::try_from(fields.len()).unwrap()], &fields[..]].concat()
    }

    async fn read_all(mut bytes: &[u8]) -> Result<ConnectRequest, ConnectError> {
        let request = read(&mut bytes).await;
        assert!(request.is_err() || bytes.is_empty());
        request
    }

    #[tokio::test]
    async fn tokens_of_all_drafts_are_accepted_in_every_code() {
        const OLDER: [&[u8]; 2] = [OLDER_TOKEN, b"\x89\xf0\x58\xd3\x60\xea\x45\x67\xb1\x3f"];
        for (first, name) in NAMES {
            for first in [first, first | NEVER_COMPRESSED] {
                for token in TOKENS.into_iter().chain(OLDER) {
                    let asked = read_all(&request(first, name, token)).await.unwrap();
                    assert_eq!(asked.url.as_str(), "https://a.b/wt?token=1");
                }
            }
        }
    }

    #[tokio::test]
    async fn other_tokens_and_requests_that_end_early_are_refused() {
        let (first, name) = NAMES[0];
        for token in [&b"\x09websocket"[..], b"\x10webtransport-h33", b"\x0ewebtransport-h"] {
            let error = read_all(&request(first, name, token)).await.unwrap_err();
            assert!(matches!(error, ConnectError::WrongProtocol(Some(_))), "{error}");
        }
        let whole = request(first, name, TOKENS[0]);
        for len in 0..whole.len() {
            let error = read_all(&whole[..len]).await.unwrap_err();
            assert!(matches!(error, ConnectError::UnexpectedEnd), "{len}: {error}");
        }
        // The length of a frame of 2^30 bytes, of which none has to arrive.
        let error = read_all(b"\x01\xc0\x00\x00\x00\x40\x00\x00\x00").await.unwrap_err();
        assert!(matches!(error, ConnectError::FrameTooLarge), "{error}");
    }

    #[tokio::test]
    async fn frames_of_reserved_kinds_are_passed_over() {
        let (first, name) = NAMES[1];
        let bytes = [b"\x21\x03abc", &request(first, name, TOKENS[1])[..]].concat();
        assert!(read_all(&bytes).await.is_ok());
        let error = read_all(b"\x00\x00").await.unwrap_err();
        assert!(matches!(error, ConnectError::UnexpectedFrame(Frame::DATA)), "{error}");
    }
}
