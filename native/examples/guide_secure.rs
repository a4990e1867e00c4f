//! Step 6 of the guide: an encrypted server that admits the users of a login server, each with a token.
//!
//! ```sh
//! cargo run -p rakwire-native --features secure --example guide_secure -- keys target/guide
//! cargo run -p rakwire-native --features secure --example guide_secure -- server 127.0.0.1:19132 target/guide
//! cargo run -p rakwire-native --features secure --example guide_secure -- client 127.0.0.1:19132 target/guide 42
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rakwire_native::secure::{
    ConnectToken, MAX_CONNECT_TOKEN, PublicKey, ServerIdentity, StaticKey, TokenClaims, TokenServer,
    TokenVerifier,
};
use rakwire_native::{
    ConnectOptions, Delivery, Endpoint, Options, UsedTokenTable, create_key_file, create_token_key_file, id,
    read_key_file, read_token_key_file, system_random,
};

/// A line of the server.
const NOTICE: u8 = id::USER + 2;
/// A token is used immediately, so it need not be valid for long.
const LIFETIME: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [role, folder] if role == "keys" => create_keys(Path::new(folder))?,
        [role, address, folder] if role == "server" => {
            let endpoint = Endpoint::bind(address, options(Path::new(folder))?).await?;
            println!("listening on {}", endpoint.local_addr());
            serve(endpoint).await;
        }
        [role, address, folder, user] if role == "client" => {
            let key = StaticKey::generate(&mut system_random()?);
            let token = log_in(Path::new(folder), user.parse()?, key.public(), address)?;
            println!("{}", connect(address, &token, &key).await?);
        }
        _ => {
            return Err(
                "usage: guide_secure keys FOLDER | server ADDRESS FOLDER | client ADDRESS FOLDER USER".into(),
            );
        }
    }
    Ok(())
}

/// Creates the key of the game server, and the key that it shares with the login server.
pub(crate) fn create_keys(folder: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    create_key_file(folder.join("server.key"))?;
    create_token_key_file(folder.join("token.key"))?;
    Ok(())
}

/// Returns the options of a server that refuses clients without a token.
pub(crate) fn options(folder: &Path) -> Result<Options, Box<dyn Error>> {
    let keys = [read_token_key_file(folder.join("token.key"))?].into_iter().collect();
    let mut identity = ServerIdentity::new(read_key_file(folder.join("server.key"))?);
    // Each token opens one connection.
    identity.tokens = Some(TokenVerifier::shared(keys, Arc::new(UsedTokenTable::default())));
    let mut options = Options::server(64)?;
    options.secure()?.server = Some(identity);
    Ok(options)
}

/// Greets each client with the user id in its token.
pub(crate) async fn serve(endpoint: Endpoint) {
    while let Some(connection) = endpoint.accept().await {
        let Some(token) = connection.accepted_token() else { continue };
        let notice = [&[NOTICE], format!("welcome, user {}", token.user_id).as_bytes()].concat();
        tokio::spawn(async move { connection.disconnect_with(&notice, Delivery::RELIABLE_ORDERED).await });
    }
}

/// Issues a token. In a real game, the login server does this after a login, and sends the token over HTTPS.
pub(crate) fn log_in(
    folder: &Path,
    user_id: u64,
    client: PublicKey,
    address: &str,
) -> Result<String, Box<dyn Error>> {
    let server = read_key_file(folder.join("server.key"))?.public();
    let expires = (SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)? + LIFETIME).as_secs();
    let claims = TokenClaims { user_id, expires, client, servers: &[server.hash()], user_data: b"" };
    let sealed = claims.seal(&read_token_key_file(folder.join("token.key"))?, &mut system_random()?)?;
    let servers = [TokenServer { key: server, name: address }].into_iter().collect();
    Ok(ConnectToken { expires, servers, sealed: &sealed }.to_string())
}

/// Connects with a token, trusting only the server key in the token, and returns the greeting.
pub(crate) async fn connect(server: &str, token: &str, key: &StaticKey) -> Result<String, Box<dyn Error>> {
    let mut options = Options::client()?;
    options.secure()?;
    let endpoint = Endpoint::bind("0.0.0.0:0", options).await?;
    let mut buffer = [0; MAX_CONNECT_TOKEN];
    let token = ConnectToken::from_text(token, &mut buffer)?;
    let options = ConnectOptions::connect_token(&token, &token.servers[0], key);
    let connection = endpoint.connect_with(server.parse()?, &options).await?;
    let notice = connection.recv().await.ok_or("the server has left")?;
    Ok(String::from_utf8_lossy(notice.bytes.get(1..).unwrap_or_default()).into_owned())
}
