//! Tests of admission decisions.

use std::collections::VecDeque;
use std::fs;
use std::num::NonZeroUsize;
use std::time::{Duration, SystemTime};

use http::HeaderMap;

use super::*;
use crate::config::AddressLimits;
use crate::token::SigningKey;

const SECOND: Duration = Duration::from_secs(1);

/// Creates an admission with targets `game` and `other`, and a customized configuration.
async fn admission(change: impl FnOnce(&mut Config)) -> Admission {
    let config = config(change);
    let targets = Targets::resolve(&config, &Targets::default()).await.unwrap();
    Admission::new(&config, targets).unwrap()
}

fn config(change: impl FnOnce(&mut Config)) -> Config {
    let config = Config::new("127.0.0.1:0".parse().unwrap());
    let mut config = config.with_target("game=127.0.0.1:1".parse().unwrap());
    config = config.with_target("other=127.0.0.1:2".parse().unwrap());
    change(&mut config);
    config
}

fn request(client: &str, query: &str) -> Request {
    Request::from_http(SocketAddr::new(client.parse().unwrap(), 5), &HeaderMap::new(), query)
}

/// A signing key, and the key file of the relay, which is removed on drop.
struct Issuer {
    key: SigningKey,
    file: std::path::PathBuf,
}

impl Issuer {
    fn new(name: &str, key: SigningKey) -> Self {
        let file = std::env::temp_dir().join(format!("rakwire-relay-{}-{name}.key", std::process::id()));
        fs::write(&file, key.public_text().unwrap_or_else(|| key.to_text())).unwrap();
        Self { key, file }
    }

    fn token(&self, expires: SystemTime, change: impl FnOnce(&mut Claims)) -> String {
        let mut claims = Claims::new("game", expires).unwrap();
        change(&mut claims);
        self.key.sign(&claims).unwrap()
    }

    async fn admission(&self, single_use: bool) -> Admission {
        admission(|config| {
            config.tokens.keys = vec![self.file.clone()];
            config.tokens.single_use = single_use;
        })
        .await
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

impl Admission {
    fn admit(&self, request: &Request) -> Result<Grant, Refusal> {
        self.admit_at(request, Now::read())
    }

    fn admit_at(&self, request: &Request, now: Now) -> Result<Grant, Refusal> {
        let permission = self.check(now, request)?;
        let candidate = self.candidate(now, &permission)?;
        candidate.take_slot().map_err(|candidate| candidate.excess().into())
    }
}

fn refused_text(decision: Result<Grant, Refusal>) -> String {
    match decision {
        Err(Refusal::Close(reason)) => reason.text(),
        other => panic!("not refused by a close code: {other:?}"),
    }
}

#[tokio::test]
async fn a_token_is_valid_only_for_its_target_its_client_address_and_its_lifetime() {
    for (name, key) in [("ed25519", SigningKey::ed25519()), ("hmac", SigningKey::hmac_sha256())] {
        let issuer = Issuer::new(name, key.unwrap());
        let admission = issuer.admission(false).await;
        let now = SystemTime::now();
        let decide = |client: &str, target: &str, token: &str, at: SystemTime| {
            let now = Now { wall: at, ..Now::read() };
            admission.admit_at(&request(client, &format!("target={target}&token={token}")), now)
        };
        let token = issuer.token(now + 60 * SECOND, |claims| claims.addr = "192.0.2.1/32".parse().ok());
        let grant = decide("192.0.2.1", "game", &token, now).unwrap();
        assert_eq!(grant.target.name.as_str(), "game");
        drop(grant);
        assert!(decide("::ffff:192.0.2.1", "game", &token, now).is_ok());
        assert!(decide("192.0.2.1", "game", &token, now + 64 * SECOND).is_ok(), "within the leeway");
        for (client, target, at, expected) in [
            ("192.0.2.2", "game", now, "the token is for another address"),
            ("192.0.2.1", "other", now, "the token is for another target"),
            ("192.0.2.1", "game", now + 67 * SECOND, "the token has expired"),
        ] {
            assert_eq!(refused_text(decide(client, target, &token, at)), expected);
        }
        let later = issuer.token(now + 60 * SECOND, |claims| claims.nbf = Some(claims.exp - 30));
        assert_eq!(refused_text(decide("192.0.2.1", "game", &later, now)), "the token is not valid yet");
        assert!(decide("192.0.2.1", "game", &later, now + 40 * SECOND).is_ok());
        for exp in [7200, u64::MAX, i64::MAX as u64] {
            let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            let long = issuer.token(now, |claims| claims.exp = exp.saturating_add(since));
            let refused = refused_text(decide("192.0.2.1", "game", &long, now));
            assert!(
                refused == "the token is valid for too long" || refused == "the token is not valid",
                "{refused}"
            );
        }
    }
}

#[tokio::test]
async fn a_missing_or_malformed_token_is_refused() {
    for (name, key) in [("no-ed25519", SigningKey::ed25519()), ("no-hmac", SigningKey::hmac_sha256())] {
        let issuer = Issuer::new(name, key.unwrap());
        let admission = issuer.admission(false).await;
        let decide = |query: &str| refused_text(admission.admit(&request("192.0.2.1", query)));
        assert_eq!(decide("target=game"), "a token is needed");
        assert_eq!(decide("target=game&token=a.b.c"), "the token is not valid");
    }
}

#[tokio::test]
async fn a_single_use_token_cannot_be_replayed() {
    let issuer = Issuer::new("once", SigningKey::ed25519().unwrap());
    let admission = issuer.admission(true).await;
    let now = SystemTime::now();
    let token = issuer.token(now + 60 * SECOND, |_| {});
    let request_again = request("192.0.2.1", &format!("target=game&token={token}"));
    drop(admission.admit(&request_again).unwrap());
    assert_eq!(refused_text(admission.admit(&request_again)), "the token has been used");
    assert!(
        admission.check(Now::read(), &request_again).is_ok(),
        "`check` does not verify the token, which only a new flow requires"
    );
    // Two tokens have the same id.
    let id = |claims: &mut Claims| claims.jti = "one".to_owned();
    for (index, expires) in [50, 55].into_iter().enumerate() {
        let token = issuer.token(now + expires * SECOND, id);
        let decision = admission.admit(&request("192.0.2.1", &format!("target=game&token={token}")));
        assert_eq!(decision.is_ok(), index == 0);
    }
}

#[tokio::test]
async fn a_refused_request_keeps_its_token_unused() {
    let issuer = Issuer::new("kept", SigningKey::ed25519().unwrap());
    let admission = admission(|config| {
        config.tokens.keys = vec![issuer.file.clone()];
        config.tokens.single_use = true;
        config.limits.max_clients = 1;
    })
    .await;
    let query = || format!("target=game&token={}", issuer.token(SystemTime::now() + 60 * SECOND, |_| {}));
    let first = admission.admit(&request("192.0.2.1", &query())).unwrap();
    let second = query();
    assert!(refused_text(admission.admit(&request("192.0.2.2", &second))).contains("maximum of 1 clients"));
    drop(first);
    assert!(admission.admit(&request("192.0.2.2", &second)).is_ok());
}

/// A waiting candidate keeps its claims, so that it evicts at most one flow.
#[tokio::test]
async fn a_candidate_holds_its_shares_and_its_token_but_no_slot() {
    let issuer = Issuer::new("candidate", SigningKey::ed25519().unwrap());
    let admission = admission(|config| {
        config.tokens.keys = vec![issuer.file.clone()];
        config.tokens.single_use = true;
        config.limits.max_clients = 1;
        config.clients.per_address = 1;
    })
    .await;
    let token = || issuer.token(SystemTime::now() + 60 * SECOND, |_| {});
    let (first, second) = (token(), token());
    let check = |client: &str, token: &str| {
        admission.check(Now::read(), &request(client, &format!("target=game&token={token}"))).unwrap()
    };
    let connected = admission.admit(&request("192.0.2.1", &format!("target=game&token={first}"))).unwrap();
    let refused = |client: &str, token: &str| {
        admission.candidate(Now::read(), &check(client, token)).err().map(|reason| reason.text())
    };
    assert_eq!(refused("192.0.2.1", &second).as_deref(), Some("too many clients from your address"));
    assert_eq!(refused("192.0.2.2", &first).as_deref(), Some("the token has been used"));
    let permission = check("192.0.2.2", &second);
    let waiting = admission.candidate(Now::read(), &permission).unwrap().take_slot().unwrap_err();
    assert_eq!(refused("192.0.2.3", &second).as_deref(), Some("the token has been used"));
    assert_eq!(refused("192.0.2.2", &token()).as_deref(), Some("too many clients from your address"));
    drop(connected);
    let connected = waiting.take_slot().unwrap();
    assert_eq!(connected.client.ip(), "192.0.2.2".parse::<IpAddr>().unwrap());
    assert_eq!(refused("192.0.2.4", &second).as_deref(), Some("the token has been used"));
}

#[tokio::test]
async fn token_keys_rotate_without_refusals() {
    let (old, new) = (
        Issuer::new("old", SigningKey::ed25519().unwrap()),
        Issuer::new("new", SigningKey::hmac_sha256().unwrap()),
    );
    let admission = admission(|config| config.tokens.keys = vec![old.file.clone()]).await;
    let admits = |issuer: &Issuer| {
        let token = issuer.token(SystemTime::now() + 60 * SECOND, |_| {});
        admission.admit(&request("192.0.2.1", &format!("target=game&token={token}"))).is_ok()
    };
    let reload = async |keys: &[&Issuer]| {
        let config =
            config(|config| config.tokens.keys = keys.iter().map(|issuer| issuer.file.clone()).collect());
        admission.reload(&config, Targets::resolve(&config, &Targets::default()).await.unwrap()).unwrap();
    };
    assert_eq!((admits(&old), admits(&new)), (true, false));
    reload(&[&old, &new]).await;
    assert_eq!((admits(&old), admits(&new)), (true, true));
    reload(&[&new]).await;
    assert_eq!((admits(&old), admits(&new)), (false, true));
}

#[tokio::test]
async fn a_flood_from_one_prefix_does_not_affect_another() {
    let admission = admission(|config| {
        config.clients = AddressLimits { per_prefix: 20, burst_per_prefix: 30, ..config.clients };
        config.limits.max_clients = 30;
    })
    .await;
    let mut connected = Vec::new();
    let mut refused = 0;
    for number in 0..200 {
        match admission.admit(&request(&format!("192.0.2.{number}"), "target=game")) {
            Ok(grant) => connected.push(grant),
            Err(Refusal::Close(CloseReason::AddressLimit(_))) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!((connected.len(), refused), (20, 180));
    for other in ["192.0.3.1", "2001:db8::1"] {
        assert!(admission.admit(&request(other, "target=game")).is_ok(), "{other}");
    }
}

#[tokio::test]
async fn connections_are_limited_by_address_except_for_proxies() {
    let admission = admission(|config| {
        config.clients = AddressLimits { burst_per_address: 2, rate_per_address: 1, ..config.clients };
        config.admission.trusted_proxies = vec!["203.0.113.1/32".parse().unwrap()];
        config.admission.allow_any_origin = true;
    })
    .await;
    let admitted = |ip: &str| {
        (0..50).filter(|_| admission.admit_connection(Now::read(), ip.parse().unwrap()).is_ok()).count()
    };
    assert_eq!(admitted("192.0.2.1"), 8, "four times the burst of clients");
    assert_eq!(admitted("203.0.113.1"), 50);
    assert_eq!(admitted("127.0.0.1"), 50, "exempt");
}

#[tokio::test]
async fn deferred_requests_have_separate_limits() {
    let admission = admission(|config| {
        config.clients = AddressLimits { burst_per_address: 2, rate_per_address: 1, ..config.clients };
    })
    .await;
    let deferred = request("192.0.2.1", "target=game&defer=1");
    let admitted = (0..50).filter(|_| admission.check(Now::read(), &deferred).is_ok()).count();
    assert_eq!(admitted, 8, "four times the burst of clients");
    let client = deferred.client.ip();
    assert_eq!((0..50).filter(|_| admission.check_new(Now::read(), client).is_ok()).count(), 2);
    assert!(
        admission.check(Now::read(), &request("192.0.2.1", "target=game")).is_err(),
        "deferred clients count toward the limit of new clients"
    );
}

#[tokio::test]
async fn bans_are_checked_before_anything_else() {
    let file = std::env::temp_dir().join(format!("rakwire-relay-{}-bans", std::process::id()));
    fs::write(&file, "192.0.2.0/24\n").unwrap();
    let with_bans = |config: &mut Config| config.admission.bans = Some(file.clone());
    let admission = admission(with_bans).await;
    let banned =
        |ip: &str| matches!(admission.admit(&request(ip, "")), Err(Refusal::Forbidden(Forbidden::Banned)));
    assert!(banned("192.0.2.1") && banned("::ffff:192.0.2.1") && !banned("192.0.3.1"));
    assert!(matches!(
        admission.admit_connection(Now::read(), "192.0.2.1".parse().unwrap()),
        Err(Refusal::Forbidden(Forbidden::Banned))
    ));
    fs::write(&file, "192.0.3.1\n").unwrap();
    let config = config(with_bans);
    admission.reload(&config, Targets::resolve(&config, &Targets::default()).await.unwrap()).unwrap();
    assert!(!banned("192.0.2.1") && banned("192.0.3.1"));
    fs::write(&file, "nobody\n").unwrap();
    let error = admission.reload(&config, Targets::default()).unwrap_err().to_string();
    assert!(error.contains(":1: 'nobody' is not an address"), "{error}");
    assert!(banned("192.0.3.1"), "the old bans stay in force");
    fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn a_target_moves_despite_concurrent_discovery() {
    let admission = admission(|_| {}).await;
    let config_of =
        |target: &str| Config::new("127.0.0.1:0".parse().unwrap()).with_target(target.parse().unwrap());
    let resolved = async |config: &Config| Targets::resolve(config, &Targets::default()).await.unwrap();
    let before = admission.targets();
    let mut moved = ResolvedTarget::clone(before.find("game").unwrap());
    moved.address = "127.0.0.1:3".parse().unwrap();
    let mut after = before.clone();
    after.insert(moved.clone());
    admission.set_discovered(resolved(&config_of("arena=127.0.0.1:9")).await);
    let [[old, new]] = &admission.replace_targets(|_| after)[..] else {
        panic!("one target has a new address")
    };
    assert_eq!((old, &**new), (before.find("game").unwrap(), &moved));
    assert_eq!(**admission.targets().find("game").unwrap(), moved);
    assert!(admission.offered().find("arena").is_some());
}

#[tokio::test]
async fn connected_clients_count_toward_the_limit_after_a_reload() {
    let limit = |max| move |config: &mut Config| config.limits.max_clients = max;
    let admission = admission(limit(2)).await;
    let connected = [(); 2].map(|()| admission.admit(&request("192.0.2.1", "target=game")).unwrap());
    assert!(admission.admit(&request("192.0.2.1", "target=game")).is_err());
    for (max, admitted) in [(3, true), (1, false)] {
        let config = config(limit(max));
        admission.reload(&config, Targets::resolve(&config, &Targets::default()).await.unwrap()).unwrap();
        assert_eq!(admission.admit(&request("192.0.2.1", "target=game")).is_ok(), admitted);
    }
    drop(connected);
    assert!(admission.admit(&request("192.0.2.1", "target=game")).is_ok());
}

/// Simulates a day in which clients connect from everywhere, each with one token, and stay for a while.
#[tokio::test]
async fn a_day_of_clients_leaves_no_state() {
    const DAY: u32 = 24 * 60 * 60;
    const LIFETIME: Duration = Duration::from_secs(60);

    let issuer = Issuer::new("day", SigningKey::hmac_sha256().unwrap());
    let admission = issuer.admission(true).await;
    let rate = Rate { datagrams: NonZeroUsize::MIN, bytes: NonZeroUsize::MIN };
    let (start, mut flows) = (Now::read(), VecDeque::new());
    let mut most = 0;
    for second in (0..DAY).step_by(10) {
        let now = Now { at: start.at + second * SECOND, wall: start.wall + second * SECOND };
        let client = IpAddr::from((0x0B00_0000 + second).to_be_bytes());
        let token = issuer.token(now.wall + LIFETIME, |_| {});
        let request = request(&client.to_string(), &format!("target=game&token={token}"));
        let grant = admission.admit_at(&request, now).unwrap();
        assert!(admission.admit_at(&request, now).is_err(), "the token has been used");
        let rate = admission.shared_rate(&grant, Some(rate), now.at);
        flows.push_back((grant, rate));
        if flows.len() > 12 {
            flows.pop_front();
        }
        most = most.max(admission.usage().tokens);
    }
    assert!(most as u64 <= LIFETIME.as_secs(), "{most} token ids were stored at a time");
    drop(flows);
    let Usage { slots, networks, .. } = admission.usage();
    assert_eq!((slots, networks), ([0, 0], [0, 0]));
    let (rates, unused_max) = admission.rates.len();
    assert!(rates <= unused_max + 12, "{rates} rates of {DAY} s");
}

#[tokio::test]
async fn an_origin_claim_binds_a_token_to_its_page() {
    let issuer = Issuer::new("origin", SigningKey::ed25519().unwrap());
    let now = SystemTime::now();
    let token = |origin: Option<&str>| {
        issuer.token(now + 60 * SECOND, |claims| claims.origin = origin.map(|origin| origin.parse().unwrap()))
    };
    let tokens = [token(Some("https://a.example")), token(Some("https://b.example")), token(None)];
    let client = SocketAddr::new("192.0.2.1".parse().unwrap(), 5);
    let by_websocket = |origin: Option<&'static str>, token: &str| {
        let mut headers = HeaderMap::new();
        if let Some(origin) = origin {
            headers.insert("origin", http::HeaderValue::from_static(origin));
        }
        Request::from_http(client, &headers, &format!("target=game&token={token}"))
    };
    let by_data_channels =
        |token: &str| Request::without_origin(client, Some("game".to_owned()), Some(token.to_owned()));
    let admission = async |change: fn(&mut Config)| {
        admission(|config| {
            config.tokens.keys = vec![issuer.file.clone()];
            config.admission.exempt = vec!["192.0.2.1/32".parse().unwrap()];
            change(config);
        })
        .await
    };
    let listed = admission(|config| {
        config.admission.allow_origins = vec!["https://a.example".parse().unwrap()];
    })
    .await;
    let other_page = "the token is not for a page of this origin";
    assert!(listed.admit(&by_websocket(Some("https://a.example"), &tokens[0])).is_ok());
    assert!(listed.admit(&by_websocket(Some("https://A.example:443"), &tokens[2])).is_ok());
    assert_eq!(refused_text(listed.admit(&by_websocket(Some("https://a.example"), &tokens[1]))), other_page);
    assert!(listed.admit(&by_data_channels(&tokens[0])).is_ok());
    for token in &tokens[1..] {
        assert_eq!(refused_text(listed.admit(&by_data_channels(token))), other_page);
    }
    let any = admission(|config| config.admission.allow_any_origin = true).await;
    assert!(
        any.admit(&by_data_channels(&tokens[1])).is_ok() && any.admit(&by_data_channels(&tokens[2])).is_ok()
    );
    assert_eq!(
        refused_text(any.admit(&by_websocket(None, &tokens[0]))),
        other_page,
        "a client other than a browser"
    );
    let without = admission(|config| {
        config.admission.allow_origins = vec!["https://a.example".parse().unwrap()];
        config.webrtc.allow_without_origin = true;
    })
    .await;
    assert!(tokens.iter().all(|token| without.admit(&by_data_channels(token)).is_ok()));
}
