//! The registry of message ids.

use rakwire::endpoint::{MessageIds, Plugin};
use rakwire::raknet::{Delivery, Guid, RakNet};
use rakwire_plugins::calls::RemoteCalls;
use rakwire_plugins::calls::rpc4::Rpc4;
use rakwire_plugins::files::{
    Entry, FileReceiver, FileSender, Limits, MIN_BYTES, Source, StorageError, Store, Totals,
};
use rakwire_plugins::mesh::{ConnectionGraph, Mesh};
use rakwire_plugins::nat::{Facilitator, Traversal};
use rakwire_plugins::ready::ReadyEvents;
use rakwire_plugins::registry::{Owner, REGISTRY, lookup};
use rakwire_plugins::replication::{Class, EverythingInScope, Field, FixedAuthority, FixedReplicas};

static CLASSES: [Class; 1] = [Class { fields: &[Field::new(8)] }];

#[test]
fn every_id_has_exactly_one_entry() {
    for id in 0..=u8::MAX {
        assert_eq!(
            REGISTRY.iter().filter(|claim| (claim.first..=claim.last).contains(&id)).count(),
            1,
            "{id}"
        );
    }
    assert!(REGISTRY.is_sorted_by_key(|claim| claim.first));
}

fn owned_by(owner: Owner, purpose: &str) -> MessageIds {
    let ids = (0..=u8::MAX).filter(|id| {
        lookup(*id).is_some_and(|claim| claim.owner == owner && claim.purpose.starts_with(purpose))
    });
    MessageIds::of(&ids.collect::<Vec<_>>())
}

/// A source and a store without files.
struct Nothing;

impl Source for Nothing {
    fn totals(&self) -> Totals {
        Totals::default()
    }

    fn entry(&self, _: u32) -> Option<Entry<'_>> {
        None
    }

    fn read(&mut self, _: u32, _: u64, _: &mut [u8]) -> Result<(), StorageError> {
        Err(StorageError)
    }
}

impl Store for Nothing {
    fn begin(&mut self, _: u32, _: &Entry<'_>) -> Result<u64, StorageError> {
        Err(StorageError)
    }

    fn read(&mut self, _: u32, _: u64, _: &mut [u8]) -> Result<(), StorageError> {
        Err(StorageError)
    }

    fn write(&mut self, _: u32, _: u64, _: &[u8]) -> Result<(), StorageError> {
        Err(StorageError)
    }

    fn discard(&mut self, _: u32) -> Result<(), StorageError> {
        Err(StorageError)
    }

    fn finish(&mut self, _: u32) -> Result<(), StorageError> {
        Err(StorageError)
    }
}

#[test]
fn plugins_use_their_registered_ids() {
    let ready: &dyn Plugin<RakNet> = &ReadyEvents::<1, 1>::new();
    assert_eq!(ready.message_ids(), owned_by(Owner::Original, "ready event"));
    let graph: &dyn Plugin<RakNet> = &ConnectionGraph::<1>::new();
    assert_eq!(graph.message_ids(), owned_by(Owner::Original, "connection graph"));
    let mesh: &dyn Plugin<RakNet> = &Mesh::<1>::new(Guid(1));
    let mut ids = graph.message_ids();
    (0..=u8::MAX).filter(|id| owned_by(Owner::Rakwire, "mesh").contains(*id)).for_each(|id| ids.insert(id));
    assert_eq!(mesh.message_ids(), ids);
    let facilitator: &dyn Plugin<RakNet> = &Facilitator::<1, 1>::new(&[], &[], [7; 32]);
    let traversal: &dyn Plugin<RakNet> = &Traversal::<1>::new();
    for plugin in [facilitator, traversal] {
        assert_eq!(plugin.message_ids(), owned_by(Owner::Rakwire, "NAT traversal"));
    }
    let calls: &dyn Plugin<RakNet> = &RemoteCalls::<RakNet, (), 1, 1, 100>::new(());
    assert_eq!(calls.message_ids(), owned_by(Owner::Rakwire, "remote calls"));
    let rpc4: &dyn Plugin<RakNet> = &Rpc4::<(), 1, 1, 100>::new(());
    assert_eq!(rpc4.message_ids(), owned_by(Owner::Original, "remote procedure calls"));
    let limits = Limits { files: 0, file_bytes: 0, bytes: 0, timeout: std::time::Duration::ZERO };
    let sender: &dyn Plugin<RakNet> = &FileSender::<RakNet, _, 1, 2, MIN_BYTES>::new(Nothing);
    let receiver: &dyn Plugin<RakNet> = &FileReceiver::<RakNet, _, 1, 1, MIN_BYTES>::new(Nothing, limits);
    assert_eq!(
        sender.message_ids().first_common(receiver.message_ids()),
        None,
        "a peer may have both plugins"
    );
    let authority: &dyn Plugin<RakNet> =
        &FixedAuthority::<RakNet, _, 1, 1, 1, 2, 40>::new(&CLASSES, EverythingInScope, Delivery::UNRELIABLE)
            .expect("a class");
    let replicas: &dyn Plugin<RakNet> =
        &FixedReplicas::<RakNet, 1, 1, 40>::new(&CLASSES, Delivery::UNRELIABLE).expect("a class");
    assert_eq!(
        authority.message_ids().first_common(replicas.message_ids()),
        None,
        "a peer may have both plugins"
    );
    for plugin in [authority, replicas] {
        assert!(plugin.message_ids().first_common(owned_by(Owner::Rakwire, "replication")).is_some());
    }
    for plugin in [sender, receiver] {
        assert!(plugin.message_ids().first_common(owned_by(Owner::Rakwire, "file transfer")).is_some());
    }
}
