//! QUIC from the crate `quinn`: reliable messages in one stream, each with a length prefix, and unreliable messages in
//! datagrams.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, SendStream, ServerConfig, TokioRuntime,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::sync::Mutex;

use crate::library::{Delivery, Library, Server, socket};
use crate::role::BenchConnection;

const NAME: &str = "localhost";
/// The first byte of the stream. The server detects a stream only when data arrives on it.
const OPENED: &[u8] = &[0];

pub(crate) struct Quinn;

impl Library for Quinn {
    type Connection = Messages;
    type Server = Listener;

    async fn serve(address: SocketAddr, delivery: Delivery) -> Result<Listener, String> {
        let pair =
            rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::Pkcs8(pair.signing_key.serialize_der().into());
        let config = ServerConfig::with_single_cert(vec![pair.cert.der().clone()], key);
        let config = config.map_err(|error| error.to_string())?;
        Ok(Listener { endpoint: endpoint(address, Some(config))?, delivery })
    }

    async fn connect(address: SocketAddr, delivery: Delivery) -> Result<Messages, String> {
        let config = client_config()?;
        let endpoint = endpoint(([127, 0, 0, 1], 0).into(), None)?;
        let connecting = endpoint.connect_with(config, address, NAME).map_err(|error| error.to_string())?;
        let connection = connecting.await.map_err(|error| error.to_string())?;
        let way = match delivery {
            Delivery::Unreliable => Way::Datagrams,
            Delivery::ReliableOrdered => {
                let (mut writer, reader) = connection.open_bi().await.map_err(|error| error.to_string())?;
                writer.write_all(OPENED).await.map_err(|error| error.to_string())?;
                Way::stream(writer, reader)
            }
        };
        Ok(Messages { way, connection, _endpoint: endpoint })
    }
}

fn endpoint(address: SocketAddr, config: Option<ServerConfig>) -> Result<Endpoint, String> {
    let endpoint = Endpoint::new(EndpointConfig::default(), config, socket(address)?, Arc::new(TokioRuntime));
    endpoint.map_err(|error| error.to_string())
}

/// Returns a configuration that accepts every certificate, because the server has just been started on loopback.
fn client_config() -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(AnyServer(provider.signature_verification_algorithms));
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    let config = QuicClientConfig::try_from(config).map_err(|error| error.to_string())?;
    Ok(ClientConfig::new(Arc::new(config)))
}

#[derive(Debug)]
struct AnyServer(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

pub(crate) struct Listener {
    endpoint: Endpoint,
    delivery: Delivery,
}

impl Server for Listener {
    type Connection = Messages;

    fn port(&self) -> u16 {
        self.endpoint.local_addr().map_or(0, |address| address.port())
    }

    async fn accept(&mut self) -> Result<Messages, String> {
        let incoming = self.endpoint.accept().await.ok_or("the endpoint has ended")?;
        let connection = incoming.await.map_err(|error| error.to_string())?;
        let way = match self.delivery {
            Delivery::Unreliable => Way::Datagrams,
            Delivery::ReliableOrdered => {
                let (writer, mut reader) = connection.accept_bi().await.map_err(|error| error.to_string())?;
                reader.read_exact(&mut [0; OPENED.len()]).await.map_err(|error| error.to_string())?;
                Way::stream(writer, reader)
            }
        };
        Ok(Messages { way, connection, _endpoint: self.endpoint.clone() })
    }
}

/// The QUIC mechanism that carries messages.
enum Way {
    Stream { writer: Mutex<SendStream>, reader: BufReader<RecvStream> },
    Datagrams,
}

impl Way {
    fn stream(writer: SendStream, reader: RecvStream) -> Self {
        Self::Stream { writer: Mutex::new(writer), reader: BufReader::with_capacity(1 << 16, reader) }
    }
}

pub(crate) struct Messages {
    way: Way,
    connection: Connection,
    _endpoint: Endpoint,
}

impl BenchConnection for Messages {
    type Message = Bytes;

    async fn send(&self, message: &[u8]) -> Result<(), String> {
        match &self.way {
            Way::Stream { writer, .. } => {
                let len = u32::try_from(message.len()).map_err(|error| error.to_string())?;
                let framed = [&len.to_be_bytes()[..], message].concat();
                writer.lock().await.write_all(&framed).await.map_err(|error| error.to_string())
            }
            Way::Datagrams => {
                let datagram = Bytes::copy_from_slice(message);
                self.connection.send_datagram_wait(datagram).await.map_err(|error| error.to_string())
            }
        }
    }

    async fn recv(&mut self) -> Result<Bytes, String> {
        match &mut self.way {
            Way::Stream { reader, .. } => {
                let len = reader.read_u32().await.map_err(|error| error.to_string())?;
                let mut message = vec![0; len as usize];
                reader.read_exact(&mut message).await.map_err(|error| error.to_string())?;
                Ok(message.into())
            }
            Way::Datagrams => self.connection.read_datagram().await.map_err(|error| error.to_string()),
        }
    }
}
