//! Application messages with a layout that RakNet defines, and the events that C++ RakNet reports as messages.

use proptest::collection::vec;
use proptest::prelude::*;
use rakwire::wire::local::{Local, Receipt, Subject};
use rakwire::wire::notice::{Notice, RemotePeer, RemotePeers};
use rakwire::wire::offline::Offline;

use super::laws::{Ends, check, written};
use super::values::{HEAD, addresses, guids};

proptest! {
    /// The message takes the remaining bytes.
    #[test]
    fn timestamp_messages_round_trip(time: u64, message in vec(any::<u8>(), 0..600)) {
        let packet = Notice::Timestamp { time, message: &message };
        check(&packet, &written(&packet)?, Ends::From(9));
    }

    /// The data takes the remaining bytes; it is sent inside an out-of-band message.
    #[test]
    fn advertise_system_messages_round_trip(guid in guids(), data in vec(any::<u8>(), 0..398)) {
        let packet = Notice::Advertise { data: &data };
        let inner = written(&packet)?;
        check(&packet, &inner, Ends::From(1));
        let outer = Offline::OutOfBand { guid, data: &inner };
        check(&outer, &written(&outer)?, Ends::From(HEAD + 8 + 1));
    }

    #[test]
    fn remote_disconnection_and_loss_messages_round_trip(address in addresses(), guid in guids()) {
        let disconnected = Notice::RemoteDisconnected { address, guid };
        check(&disconnected, &written(&disconnected)?, Ends::Fixed);
        let lost = Notice::RemoteLost { address, guid };
        check(&lost, &written(&lost)?, Ends::Fixed);
    }

    #[test]
    fn remote_new_incoming_connections_round_trip(list in vec((addresses(), guids(), any::<u16>()), 0..12)) {
        let list = list.into_iter().map(|(address, guid, ping)| RemotePeer { address, guid, ping });
        let list: Vec<RemotePeer> = list.collect();
        let mut buffer = [0; 12 * RemotePeer::MAX_SIZE];
        let peers = RemotePeers::encode(list.iter().copied(), &mut buffer).expect("twelve entries fit");
        prop_assert!(peers.iter().eq(list.iter().copied()));
        let packet = Notice::RemoteConnected { peers };
        check(&packet, &written(&packet)?, Ends::Fixed);
    }

    /// "Requires security" and "connection lost" have a second, longer form with an address and a GUID.
    #[test]
    fn local_events_round_trip(
        address in addresses(),
        guid in guids(),
        number: u32,
        total: u32,
        first in vec(any::<u8>(), 0..600),
    ) {
        for peer in [None, Some(Subject { address, guid })] {
            let security = Local::RequiresSecurity { peer };
            check(&security, &written(&security)?, Ends::At(1));
            let lost = Local::ConnectionLost { peer };
            check(&lost, &written(&lost)?, Ends::At(1));
        }
        let others = [
            Local::PublicKeyMismatch,
            Local::AttemptFailed,
            Local::Receipt { outcome: Receipt::Acknowledged, number },
            Local::Receipt { outcome: Receipt::Lost, number },
            Local::DownloadProgress { received: number, total, first: &first },
        ];
        for event in &others {
            check(event, &written(event)?, Ends::Fixed);
        }
    }
}
