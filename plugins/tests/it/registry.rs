//! The registry of message ids.

use rakwire::endpoint::{MessageIds, Plugin};
use rakwire::raknet::RakNet;
use rakwire_plugins::calls::RemoteCalls;
use rakwire_plugins::ready::ReadyEvents;
use rakwire_plugins::registry::{Owner, REGISTRY, lookup};

#[test]
fn every_id_has_one_entry() {
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

#[test]
fn plugins_have_the_ids_that_the_registry_says() {
    let ready: &dyn Plugin<RakNet> = &ReadyEvents::<1, 1>::new();
    assert_eq!(ready.message_ids(), owned_by(Owner::Original, "ready event"));
    let calls: &dyn Plugin<RakNet> = &RemoteCalls::<RakNet, (), 1, 1, 100>::new(());
    assert_eq!(calls.message_ids(), owned_by(Owner::Rakwire, "remote calls"));
}
