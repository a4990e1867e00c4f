//! A tone of two seconds from one machine to another, over real sockets and with the oldest codec there is (G.711, μ-law): what
//! is heard must be what was said. A game takes Opus instead, which is smaller and conceals losses.

use std::time::Duration;

use rakwire::endpoint::PluginHost;
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Endpoint, Options, RakNet};
use rakwire_plugins::voice::{Playback, Voice, VoiceConfig};

type Failure = Box<dyn std::error::Error>;
type Plugin = SharedHook<Voice<8, 16, SAMPLES>>;

/// Samples of a frame: 20 ms at 8 kHz, each of which takes a byte.
const SAMPLES: usize = 160;
const FRAMES: usize = 100;
const FRAME: Duration = Duration::from_millis(20);
const MESSAGE_ID: u8 = 0x90;

/// A sample as G.711 writes it: a sign, an exponent and four bits.
fn encode(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    let magnitude = (sample.unsigned_abs().min(32_635) + 132) as u32;
    let exponent = 24 - magnitude.leading_zeros();
    let mantissa = (magnitude >> (exponent + 3)) & 0x0F;
    !(sign | (exponent as u8) << 4 | mantissa as u8)
}

fn decode(byte: u8) -> i16 {
    let byte = !byte;
    let (exponent, mantissa) = (u32::from(byte >> 4 & 7), u32::from(byte & 0x0F));
    let magnitude = (((mantissa << 3) + 132) << exponent) as i32 - 132;
    (if byte & 0x80 == 0 { magnitude } else { -magnitude }) as i16
}

/// A sample of a tone of 440 Hz.
fn tone(at: usize) -> i16 {
    (f64::sin(std::f64::consts::TAU * 440.0 * at as f64 / 8_000.0) * 8_000.0) as i16
}

async fn endpoint(options: Options) -> Result<(Endpoint, Plugin), Failure> {
    let voice = SharedHook::new(Voice::new(VoiceConfig::new(MESSAGE_ID)));
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(voice.clone())?;
    Ok((Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?, voice))
}

/// Says the tone, a frame each 20 ms.
async fn speak(endpoint: &Endpoint, voice: &Plugin) -> Result<(), Failure> {
    let mut ticks = tokio::time::interval(FRAME);
    for number in 0..FRAMES {
        ticks.tick().await;
        let frame: Vec<u8> = (0..SAMPLES).map(|at| encode(tone(number * SAMPLES + at))).collect();
        let is_last = number + 1 == FRAMES;
        voice.with(|voice| if is_last { voice.talk_last(&frame) } else { voice.talk(&frame) })?;
        endpoint.wake();
    }
    Ok(())
}

/// What a loudspeaker would play until it is told to stop.
async fn listen(endpoint: &Endpoint, voice: &Plugin, stop: impl Future<Output = ()>) -> Vec<i16> {
    let mut ticks = tokio::time::interval(FRAME);
    let mut heard = Vec::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => return heard,
            _ = ticks.tick() => {}
        }
        let now = endpoint.now();
        voice.with(|voice| {
            let Some(speaker) = voice.speakers().next() else { return };
            match voice.play(now, speaker) {
                Playback::Frame(bytes) => heard.extend(bytes.iter().map(|byte| decode(*byte))),
                // What a codec makes up from the frames before, which is here the sound of one frame ago.
                Playback::Concealed => heard.extend_from_within(heard.len().saturating_sub(SAMPLES)..),
                Playback::Silence => {}
            }
        });
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Failure> {
    let (server, there) = endpoint(Options::server(8)?).await?;
    let (client, here) = endpoint(Options::client()?).await?;
    let connection = client.connect(server.local_addr()).await?;
    let accepted = server.accept().await.ok_or("the server is closed")?;

    let (said, all_said) = tokio::sync::oneshot::channel::<()>();
    let speak = async {
        let spoken = speak(&client, &here).await;
        drop(said);
        spoken
    };
    let stop = async {
        let _ = all_said.await;
        tokio::time::sleep(10 * FRAME).await;
    };
    let (spoken, heard) = tokio::join!(speak, listen(&server, &there, stop));
    spoken?;
    let stats = there.with(|voice| voice.speaker_stats(accepted.id())).ok_or("the speaker is gone")?;
    println!(
        "{} frames played, {} concealed, {} late, {} skipped",
        stats.played, stats.concealed, stats.late, stats.skipped
    );
    connection.disconnect().await;

    // On a busy machine some of it is missing, but what was played is the tone.
    let rises = heard.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
    let frequency = rises as f64 * 8_000.0 / heard.len().max(1) as f64;
    println!("a tone of {frequency:.0} Hz was heard for {:.1} s", heard.len() as f64 / 8_000.0);
    if heard.len() < 10 * SAMPLES || !(380.0..500.0).contains(&frequency) {
        return Err("it was another tone".into());
    }
    Ok(())
}
