//! Properties of packets that are read from arbitrary bytes and written again.

use core::fmt::Debug;

use rakwire::wire::control::Control;
use rakwire::wire::datagram::{CHANNELS, CapsuleHeader, MIN_CAPSULE};
use rakwire::wire::datagram::{DatagramHeader, Record};
use rakwire::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use rakwire::wire::{Reader, Source, Wire, WireError, Writer};

use super::{Broken, Kept};

/// The required agreement between the bytes that were read and the bytes that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The bytes must be equal.
    Canonical,
    /// The bytes may differ, because the reader ignores some bytes or bits.
    Loose,
}

impl Form {
    const fn canonical_if(condition: bool) -> Self {
        if condition { Self::Canonical } else { Self::Loose }
    }
}

/// Checks a datagram of a connection: its header, then capsules or records up to the end or the first malformed one.
pub fn datagram(bytes: &[u8]) -> Kept {
    let mut reader = Reader::new(bytes);
    match check::<Headers>(&mut reader, header_form)? {
        Some(DatagramHeader::Data { .. }) => capsules(&mut reader),
        Some(DatagramHeader::Ack { records, .. } | DatagramHeader::Nack { records }) => {
            for _ in 0..records {
                let Some(record) = check::<Records>(&mut reader, record_form)? else { break };
                if record.last.get() < record.first.get() {
                    return Err(format!("{record:?} ends before it begins"));
                }
            }
            Ok(())
        }
        None => Ok(()),
    }
}

/// Returns the form of a header. The reader keeps the hints of data datagrams and ignores those of acknowledgements.
fn header_form(header: &DatagramHeader, bytes: &[u8]) -> Form {
    Form::canonical_if(matches!(header, DatagramHeader::Data { .. }) || bytes[0] & 0x1F == 0)
}

fn record_form(record: &Record, bytes: &[u8]) -> Form {
    Form::canonical_if(bytes.first() == Some(&u8::from(record.first == record.last)))
}

fn capsules(reader: &mut Reader<'_>) -> Kept {
    while reader.remaining() >= MIN_CAPSULE {
        let before = reader.remaining();
        let form = |_: &CapsuleHeader, bytes: &[u8]| Form::canonical_if(bytes[0] & 0x0F == 0);
        let Some(capsule) = check::<Capsules>(reader, form)? else { break };
        let sound = capsule.bits > 0
            && capsule.channel < CHANNELS
            && capsule.split.is_none_or(|split| split.index < split.count)
            && before - reader.remaining()
                == CapsuleHeader::size(capsule.reliability, capsule.split.is_some());
        if !sound {
            return Err(format!("an invalid capsule was accepted: {capsule:?}"));
        }
        if reader.take(capsule.length()).is_err() {
            break;
        }
    }
    Ok(())
}

/// Checks an offline message.
pub fn offline(bytes: &[u8]) -> Kept {
    check::<OfflineMessages>(&mut Reader::new(bytes), offline_form).map(drop)
}

fn offline_form(message: &Offline<'_>, bytes: &[u8]) -> Form {
    /// The offset after the id, the magic and the GUID.
    const AFTER_GUID: usize = 25;
    /// The offset after the id and the magic.
    const AFTER_MAGIC: usize = 17;
    let plain = |at: usize| bytes.get(at) == Some(&4);
    let flag = |at: usize, value: u8| bytes.get(at).is_some_and(|byte| *byte == 0 || *byte == value);
    Form::canonical_if(match message {
        Offline::Ping { .. }
        | Offline::Pong { .. }
        | Offline::IncompatibleProtocol { .. }
        | Offline::Refused { .. } => true,
        Offline::Request1 { .. } => bytes.iter().skip(18).all(|byte| *byte == 0),
        Offline::Reply1 { security, .. } => {
            let rest = match security {
                ServerSecurity::None => 3,
                ServerSecurity::Cookie(_) => 7,
                ServerSecurity::PublicKey { .. } => 71,
            };
            flag(AFTER_GUID, 1) && bytes.len() == AFTER_GUID + rest
        }
        Offline::Request2 { security, .. } => match security {
            ClientSecurity::None => plain(AFTER_MAGIC),
            ClientSecurity::Cookie(_) => plain(AFTER_MAGIC + 5),
            ClientSecurity::Challenge { .. } => flag(AFTER_MAGIC + 4, 1) && plain(AFTER_MAGIC + 69),
        },
        Offline::Reply2 { answer, .. } => {
            let encrypted = if answer.is_some() { 0x80 } else { 0 };
            plain(AFTER_GUID) && bytes.get(AFTER_GUID + 9) == Some(&encrypted)
        }
        Offline::OutOfBand { .. } | _ => false,
    })
}

/// Checks a control message of RakNet.
pub fn control(bytes: &[u8]) -> Kept {
    check::<ControlMessages>(&mut Reader::new(bytes), control_form).map(drop)
}

fn control_form(message: &Control<'_>, bytes: &[u8]) -> Form {
    Form::canonical_if(match message {
        Control::Ping { .. }
        | Control::Pong { .. }
        | Control::DetectLost
        | Control::Disconnect
        | Control::DisconnectTooLarge => true,
        Control::Request { proof, .. } => {
            bytes[17] < 2 && proof.is_none_or(|proof| bytes[50] == u8::from(proof.identity.is_some()))
        }
        Control::Accepted { .. } | Control::NewIncoming { .. } => bytes[1] == 4,
        Control::InvalidPassword { guid } => guid.is_some(),
        Control::RequiresPublicKey { .. } | _ => false,
    })
}

/// A packet type that is generic over its lifetime.
trait Kind {
    type Packet<'a>: Wire<'a> + Debug;
}

struct Headers;
struct Capsules;
struct Records;
struct OfflineMessages;
struct ControlMessages;

impl Kind for Headers {
    type Packet<'a> = DatagramHeader;
}

impl Kind for Capsules {
    type Packet<'a> = CapsuleHeader;
}

impl Kind for Records {
    type Packet<'a> = Record;
}

impl Kind for OfflineMessages {
    type Packet<'a> = Offline<'a>;
}

impl Kind for ControlMessages {
    type Packet<'a> = Control<'a>;
}

/// Reads a packet, writes it and reads it again; returns `None` if the bytes are not a valid packet.
///
/// The packet must not change, and a canonical packet must be written as the same bytes.
fn check<'a, K: Kind>(
    reader: &mut Reader<'a>,
    form: impl Fn(&K::Packet<'a>, &[u8]) -> Form,
) -> Result<Option<K::Packet<'a>>, Broken> {
    let all = reader.peek();
    let Ok(packet) = K::Packet::read(reader) else { return Ok(None) };
    let taken = &all[..all.len() - reader.remaining()];
    let first = written(&packet, all.len())?;
    if form(&packet, all) == Form::Canonical && first != taken {
        return Err(format!("{packet:?} was read from {taken:02x?} and written as {first:02x?}"));
    }
    let again = K::Packet::read(&mut Reader::new(&first))
        .map_err(|error| format!("{packet:?} was written as {first:02x?}, which cannot be read: {error}"))?;
    if written(&again, all.len())? != first {
        return Err(format!("{packet:?} became {again:?}"));
    }
    Ok(Some(packet))
}

fn written<'a>(packet: &(impl Wire<'a> + Debug), length: usize) -> Result<Vec<u8>, Broken> {
    let mut buffer = vec![0; length + 128];
    let mut writer = Writer::new(&mut buffer);
    match packet.write(&mut writer) {
        Ok(()) => Ok(writer.finish().to_vec()),
        Err(WireError::NoRoom) => {
            Err(format!("{packet:?} takes more than 128 bytes beyond the {length} read"))
        }
        Err(error) => Err(format!("{packet:?} was read and cannot be written: {error}")),
    }
}
