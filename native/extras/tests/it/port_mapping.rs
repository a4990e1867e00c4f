//! Port mappings with correct and faulty routers. Each router has its own loopback address, because PCP and NAT-PMP use
//! a fixed port.

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rakwire_extras::port_mapping::{MappingProtocol, PortMapping, PortMappingError, PortMappingOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::DEADLINE;

const OUTSIDE: [u8; 4] = [203, 0, 113, 9];

fn local() -> SocketAddr {
    "127.0.0.1:19132".parse().expect("an address")
}

fn options(gateway: Ipv4Addr) -> PortMappingOptions {
    let mut options = PortMappingOptions::default();
    options.gateway = Some(gateway);
    options.shortest_renewal = Duration::from_millis(20);
    options
}

/// Starts a router for PCP and NAT-PMP that answers with a function, and reports the lifetime of each requested
/// mapping.
async fn router(
    gateway: Ipv4Addr,
    answer: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static,
) -> mpsc::UnboundedReceiver<u32> {
    let socket = UdpSocket::bind((gateway, 5_351)).await.expect("a port");
    let (heard, lifetimes) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut buffer = [0; 1_100];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.expect("a request");
            let request = &buffer[..length];
            let Some(answer) = answer(request) else { continue };
            socket.send_to(&answer, from).await.expect("an answer");
            let lifetime = match request {
                [2, 1, _, _, lifetime @ ..] => lifetime.first_chunk(),
                [0, 1, _, _, _, _, _, _, lifetime @ ..] => lifetime.first_chunk(),
                _ => None,
            };
            // The test may have stopped listening.
            let _ = lifetime.map(|lifetime| heard.send(u32::from_be_bytes(*lifetime)));
        }
    });
    lifetimes
}

/// Returns the PCP answer, which grants the internal port plus one.
fn pcp(request: &[u8], lifetime: u32, outside: [u8; 4]) -> Option<Vec<u8>> {
    let mut answer = request.to_vec();
    answer.get_mut(1..4)?.copy_from_slice(&[0x81, 0, 0]);
    let asked = u32::from_be_bytes(*request.get(4..)?.first_chunk()?);
    answer.get_mut(4..8)?.copy_from_slice(&lifetime.min(asked).to_be_bytes());
    answer.get_mut(8..24)?.fill(0);
    let internal = u16::from_be_bytes(*request.get(40..)?.first_chunk()?);
    answer.get_mut(42..44)?.copy_from_slice(&(internal + 1).to_be_bytes());
    answer.get_mut(44..60)?.copy_from_slice(&Ipv4Addr::from(outside).to_ipv6_mapped().octets());
    Some(answer)
}

/// Returns the answers of a router that supports only NAT-PMP.
fn nat_pmp(request: &[u8]) -> Option<Vec<u8>> {
    match request {
        [0, 0] => Some([&[0, 128, 0, 0, 0, 0, 0, 1], &OUTSIDE[..]].concat()),
        [0, 1, _, _, internal @ ..] => {
            let port = u16::from_be_bytes(*internal.first_chunk()?);
            let lifetime: &[u8; 4] = internal.get(4..)?.first_chunk()?;
            let external = if *lifetime == [0; 4] { 0 } else { port + 1 };
            let head = [0, 129, 0, 0, 0, 0, 0, 1];
            Some([&head[..], &port.to_be_bytes(), &external.to_be_bytes(), lifetime].concat())
        }
        [_, opcode, ..] => Some(vec![0, opcode | 128, 0, 1, 0, 0, 0, 1]),
        _ => None,
    }
}

async fn granted(mapping: &mut PortMapping) -> Result<(SocketAddr, MappingProtocol), PortMappingError> {
    let port = timeout(DEADLINE, mapping.granted()).await.expect("an answer in time")?;
    assert_eq!(mapping.mapped(), Some(port));
    Ok((port.external, port.protocol))
}

/// Waits until a lifetime is requested.
async fn hear(lifetimes: &mut mpsc::UnboundedReceiver<u32>, wanted: u32) {
    let heard = async { while lifetimes.recv().await.expect("a router") != wanted {} };
    timeout(DEADLINE, heard).await.expect("a request in time");
}

#[tokio::test]
async fn a_port_is_mapped_by_pcp_renewed_and_removed() {
    let gateway = Ipv4Addr::new(127, 0, 61, 1);
    let mut lifetimes = router(gateway, |request| pcp(request, 1, OUTSIDE)).await;
    let mut mapping = PortMapping::start(local(), options(gateway));
    let outside = SocketAddr::from((OUTSIDE, 19_133));
    assert_eq!(granted(&mut mapping).await, Ok((outside, MappingProtocol::Pcp)));
    hear(&mut lifetimes, 7_200).await;
    // The router grants one second.
    hear(&mut lifetimes, 1).await;
    let stats = timeout(DEADLINE, mapping.close()).await.expect("a result before the timeout");
    assert!(stats.granted >= 2 && stats.failed == 0, "{stats:?}");
    assert_eq!(stats.removed, 1);
    hear(&mut lifetimes, 0).await;
}

#[tokio::test]
async fn nat_pmp_is_used_for_a_router_without_pcp() {
    let gateway = Ipv4Addr::new(127, 0, 61, 2);
    let mut lifetimes = router(gateway, nat_pmp).await;
    let mut mapping = PortMapping::start(local(), options(gateway));
    let outside = SocketAddr::from((OUTSIDE, 19_133));
    assert_eq!(granted(&mut mapping).await, Ok((outside, MappingProtocol::NatPmp)));
    // Dropping the handle removes the mapping.
    drop(mapping);
    hear(&mut lifetimes, 0).await;
}

/// The invalid answers are garbage, an unspecified address, and a mapping with a lifetime of zero.
#[tokio::test]
async fn invalid_answers_of_a_router_are_rejected() {
    type Answer = fn(&[u8]) -> Option<Vec<u8>>;
    let answers: [Answer; 7] = [
        |_| Some(Vec::new()),
        |_| Some(vec![0xFF; 1_400]),
        |request| pcp(request, 60, OUTSIDE).map(|answer| answer[..40].to_vec()),
        |request| pcp(request, 60, [127, 0, 0, 1]),
        |request| pcp(request, 60, [0; 4]),
        |request| pcp(request, 0, OUTSIDE),
        |request| {
            // The answer is for the port of another machine.
            let mut answer = pcp(request, 60, OUTSIDE)?;
            answer[41] ^= 1;
            Some(answer)
        },
    ];
    // The attempts run concurrently, because each also searches by UPnP until its timeout.
    let mut attempts = JoinSet::new();
    for (last, answer) in (10..).zip(answers) {
        attempts.spawn(async move {
            let gateway = Ipv4Addr::new(127, 0, 61, last);
            let _lifetimes = router(gateway, answer).await;
            let mut mapping = PortMapping::start(local(), options(gateway));
            let refused = granted(&mut mapping).await;
            assert!(matches!(refused, Err(PortMappingError::Refused { .. })), "{last}: {refused:?}");
            assert_eq!((mapping.mapped(), mapping.stats().failed), (None, 1));
        });
    }
    attempts.join_all().await;
}

#[tokio::test]
async fn an_unresponsive_router_times_out() {
    let gateway = Ipv4Addr::new(127, 0, 61, 3);
    let _lifetimes = router(gateway, |_| None).await;
    let mut options = options(gateway);
    options.timeout = Duration::from_millis(300);
    options.retry = Duration::from_millis(20);
    let mut mapping = PortMapping::start(local(), options);
    assert_eq!(granted(&mut mapping).await, Err(PortMappingError::Timeout));
    // The request is repeated.
    while mapping.stats().failed < 2 {
        tokio::task::yield_now().await;
    }
    let stats = timeout(DEADLINE, mapping.close()).await.expect("a result before the timeout");
    assert_eq!((stats.granted, stats.removed), (0, 0));
}

#[tokio::test]
async fn only_ipv4_ports_are_mapped() {
    for wrong in ["[::1]:19132", "127.0.0.1:0"] {
        let wrong: SocketAddr = wrong.parse().expect("an address");
        let mut mapping = PortMapping::start(wrong, options(Ipv4Addr::new(127, 0, 61, 4)));
        assert_eq!(granted(&mut mapping).await, Err(PortMappingError::Local(wrong)));
    }
}

const DESCRIPTION: &str = "<?xml version=\"1.0\"?><root><device>\
    <deviceType>urn:schemas-upnp-org:device:InternetGatewayDevice:1</deviceType><serviceList><service>\
    <serviceType>urn:schemas-upnp-org:service:WANIPConnection:1</serviceType>\
    <serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId>\
    <controlURL>/control</controlURL><SCPDURL>/schema</SCPDURL><eventSubURL>/event</eventSubURL>\
    </service></serviceList></device></root>";

/// Returns the actions of the service, with their arguments.
fn schema() -> String {
    let action = |name: &str, arguments: &[&str]| {
        let argument = |name| format!("<argument><name>{name}</name><direction>in</direction></argument>");
        let arguments: String = arguments.iter().map(argument).collect();
        format!("<action><name>{name}</name><argumentList>{arguments}</argumentList></action>")
    };
    let add = action("AddPortMapping", &["NewInternalClient", "NewLeaseDuration"]);
    let delete = action("DeletePortMapping", &["NewExternalPort"]);
    format!("<?xml version=\"1.0\"?><scpd><actionList>{add}{delete}</actionList></scpd>")
}

/// Returns a router's answer to a UPnP request.
fn upnp(request: &str) -> String {
    if request.starts_with("GET /schema") {
        return schema();
    }
    let said = |name: &str, inner: &str| {
        format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>\
             <u:{name}Response xmlns:u=\"urn:schemas-upnp-org:service:WANIPConnection:1\">{inner}</u:{name}Response>\
             </s:Body></s:Envelope>"
        )
    };
    for name in ["AddPortMapping", "DeletePortMapping"] {
        if request.contains(&format!("#{name}")) {
            return said(name, "");
        }
    }
    if request.contains("#GetExternalIPAddress") {
        return said("GetExternalIPAddress", "<NewExternalIPAddress>203.0.113.9</NewExternalIPAddress>");
    }
    DESCRIPTION.to_owned()
}

/// Starts a UPnP router that answers requests with a function. Returns its address for searches.
async fn upnp_router(
    gateway: Ipv4Addr,
    answer: impl Fn(&str) -> String + Send + 'static,
) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let http = TcpListener::bind((gateway, 0)).await.expect("a port");
    let search = UdpSocket::bind((gateway, 0)).await.expect("a port");
    let (at, discovery) = (http.local_addr().expect("bound"), search.local_addr().expect("bound"));
    tokio::spawn(async move {
        let mut buffer = [0; 1_500];
        loop {
            let (_, from) = search.recv_from(&mut buffer).await.expect("a search");
            let said = format!("HTTP/1.1 200 OK\r\nLOCATION: http://{at}/root.xml\r\n\r\n");
            search.send_to(said.as_bytes(), from).await.expect("an answer");
        }
    });
    let (heard, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = http.accept().await.expect("a connection");
            let mut request = vec![0; 8_192];
            let mut length = 0;
            while !is_whole(&request[..length]) {
                match stream.read(&mut request[length..]).await {
                    Ok(more) if more > 0 => length += more,
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let body = answer(&request);
            let mut said = String::new();
            write!(
                said,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .expect("a string");
            // The client may have closed the connection, and the test may have stopped listening.
            let _ = stream.write_all(said.as_bytes()).await;
            let _ = heard.send(request);
        }
    });
    (discovery, requests)
}

/// Returns true if a request is complete with its body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn a_port_is_mapped_by_upnp_alone() {
    let gateway = Ipv4Addr::new(127, 0, 61, 5);
    let (discovery, mut requests) = upnp_router(gateway, upnp).await;
    let mut options = options(gateway);
    options.discovery = Some(discovery);
    let mut mapping = PortMapping::start(local(), options);
    let outside = SocketAddr::from((OUTSIDE, 19_132));
    assert_eq!(granted(&mut mapping).await, Ok((outside, MappingProtocol::Upnp)));
    let stats = timeout(DEADLINE, mapping.close()).await.expect("a result before the timeout");
    assert_eq!((stats.granted, stats.removed), (1, 1));
    let mut heard = Vec::new();
    while let Ok(request) = requests.try_recv() {
        heard.push(request);
    }
    let added = heard.iter().find(|request| request.contains("#AddPortMapping")).expect("a mapping");
    assert!(added.contains("<NewInternalClient>127.0.0.1<"), "{added}");
    assert!(added.contains("<NewLeaseDuration>7200<"), "{added}");
    let removed = heard.iter().find(|request| request.contains("#DeletePortMapping")).expect("a removal");
    assert!(removed.contains("<NewExternalPort>19132<"), "{removed}");
}

/// The invalid answers are garbage, an oversized answer, endlessly nested elements, and an invalid address.
#[tokio::test]
async fn invalid_upnp_answers_are_rejected() {
    type Answer = fn(&str) -> String;
    let answers: [Answer; 4] = [
        |_| "\u{0}garbage".to_owned(),
        |_| "<a>".repeat(200_000),
        |_| "x".repeat(8 << 20),
        |request| upnp(request).replace("203.0.113.9", "239.0.0.1"),
    ];
    // The attempts run concurrently, because each repeats its search after garbage.
    let mut attempts = JoinSet::new();
    for (last, answer) in (20..).zip(answers) {
        attempts.spawn(async move {
            let gateway = Ipv4Addr::new(127, 0, 61, last);
            let (discovery, _requests) = upnp_router(gateway, answer).await;
            let mut options = options(gateway);
            options.discovery = Some(discovery);
            let mut mapping = PortMapping::start(local(), options);
            let refused = granted(&mut mapping).await;
            let Err(PortMappingError::Refused { upnp, .. }) = refused else { panic!("{last}: {refused:?}") };
            assert!(upnp.len() < 1_000, "{upnp}");
        });
    }
    attempts.join_all().await;
}
