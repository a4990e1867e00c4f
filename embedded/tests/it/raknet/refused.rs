//! Clients that a server refuses.

use rakwire::endpoint::RefuseReason;
use rakwire::raknet::{CookiePolicy, RakNet};
use rakwire_embassy::raknet::RefusedClient;

use crate::support::{Net, PORT, Wire, run};

/// Connects `clients` clients one after the other. Returns their GUIDs, and the clients that the server refused for
/// their password.
async fn refused(cookies: CookiePolicy, clients: u8) -> (Vec<rakwire::raknet::Guid>, Vec<RefusedClient>) {
    let mut net = Net::new(Wire::losing(0));
    let server = net.machine::<RakNet, 2, 48, 128, 8>(PORT, |config| {
        (config.max_incoming, config.cookies) = (2, cookies);
    });
    server.handle.set_password(b"friends").expect("a short password");
    assert_eq!(server.handle.try_refused_client(), None);
    let mut guids = Vec::new();
    for _ in 0..clients {
        let client = net.client::<RakNet, 1, 48, 128, 4>();
        client.handle.connect(server.address).await.expect_err("no password");
        guids.push(client.handle.guid());
    }
    let first = server.handle.refused_client().await;
    let others = std::iter::from_fn(|| server.handle.try_refused_client());
    (guids, std::iter::once(first).chain(others).collect())
}

#[test]
fn a_refused_client_is_reported_with_whether_its_address_is_validated() {
    run(async {
        for (cookies, is_validated) in [(CookiePolicy::Off, false), (CookiePolicy::Required, true)] {
            let (guids, refused) = refused(cookies, 1).await;
            let [client] = &refused[..] else { panic!("{refused:?}") };
            assert_eq!((client.identity, client.reason), (guids[0], RefuseReason::WrongPassword));
            assert_eq!(client.remote.ip().to_string(), "10.0.0.2");
            assert_eq!(client.is_validated, is_validated, "{cookies:?}");
        }
    });
}

#[test]
fn the_last_four_refused_clients_are_kept() {
    run(async {
        let (guids, refused) = refused(CookiePolicy::Automatic, 6).await;
        assert_eq!(refused.iter().map(|client| client.identity).collect::<Vec<_>>(), guids[2..]);
    });
}
