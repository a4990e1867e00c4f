//! Sends a tone of two seconds through Opus over real sockets, and checks that the received tone is the same.

use std::time::Duration;

use rakwire::endpoint::PluginHost;
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Endpoint, Options, RakNet};
use rakwire_plugins::voice::opus::{Decoder, Encoder, FRAME_SAMPLES, MAX_FRAME, SAMPLE_RATE};
use rakwire_plugins::voice::{Playback, TalkError, Voice, VoiceConfig};
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior};

type Failure = Box<dyn std::error::Error>;
type Plugin = SharedHook<Voice<8, 16, MAX_FRAME>>;

const FRAMES: usize = 100;
const FRAME: Duration = Duration::from_millis(20);
/// The number of silent frames after which the speaker has finished.
const SILENCE: usize = 10;
const MESSAGE_ID: u8 = 0x90;
const BITS_PER_SECOND: u32 = 24_000;

/// Returns a sample of a 440 Hz tone.
fn tone(at: usize) -> f32 {
    0.25 * (f64::sin(std::f64::consts::TAU * 440.0 * at as f64 / f64::from(SAMPLE_RATE)) as f32)
}

async fn endpoint(options: Options) -> Result<(Endpoint, Plugin), Failure> {
    let voice = SharedHook::new(Voice::new(VoiceConfig::new(MESSAGE_ID)));
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(voice.clone())?;
    Ok((Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?, voice))
}

/// Returns a timer with the interval of frames. After a delay it does not make up for missed ticks, like a microphone
/// and a loudspeaker.
fn frames() -> Interval {
    let mut ticks = tokio::time::interval(FRAME);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Sends the tone, one frame every 20 ms.
async fn speak(endpoint: &Endpoint, voice: &Plugin) -> Result<(), Failure> {
    let (mut encoder, mut buffer) = (Encoder::new(BITS_PER_SECOND)?, [0; MAX_FRAME]);
    let mut ticks = frames();
    for number in 0..FRAMES {
        ticks.tick().await;
        let samples = std::array::from_fn(|at| tone(number * FRAME_SAMPLES + at));
        let frame = encoder.encode(&samples, &mut buffer)?;
        let is_last = number + 1 == FRAMES;
        match voice.with(|voice| if is_last { voice.talk_last(frame) } else { voice.talk(frame) }) {
            // If the driver is busy the frame is dropped, and the listener conceals it.
            Ok(()) | Err(TalkError::Full) => {}
            Err(error) => return Err(error.into()),
        }
        endpoint.wake();
    }
    Ok(())
}

/// Returns the samples for a loudspeaker, until the speech is over and only silence follows.
async fn listen(
    endpoint: &Endpoint,
    voice: &Plugin,
    mut all_sent: oneshot::Receiver<()>,
) -> Result<Vec<f32>, Failure> {
    let (mut decoder, mut samples) = (Decoder::new()?, [0.0; FRAME_SAMPLES]);
    let mut ticks = frames();
    let (mut received, mut silence) = (Vec::new(), 0);
    while silence < SILENCE || all_sent.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
        ticks.tick().await;
        silence += 1;
        let now = endpoint.now();
        voice.with(|voice| {
            let Some(speaker) = voice.speakers().next() else { return };
            let playback = voice.play(now, speaker);
            if playback != Playback::Silence {
                decoder.play(playback, &mut samples);
                received.extend_from_slice(&samples);
                silence = 0;
            }
        });
    }
    Ok(received)
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Failure> {
    let (server, there) = endpoint(Options::server(8)?).await?;
    let (client, here) = endpoint(Options::client()?).await?;
    let connection = client.connect(server.local_addr()).await?;
    let accepted = server.accept().await.ok_or("the server is closed")?;

    let (said, all_sent) = oneshot::channel::<()>();
    let speak = async {
        let spoken = speak(&client, &here).await;
        drop(said);
        spoken
    };
    let (spoken, received) = tokio::join!(speak, listen(&server, &there, all_sent));
    spoken?;
    let received = received?;
    let stats = there.with(|voice| voice.speaker_stats(accepted.id())).ok_or("the speaker is gone")?;
    println!(
        "{} frames played, {} concealed, {} late, {} skipped",
        stats.played, stats.concealed, stats.late, stats.skipped
    );
    connection.disconnect().await;

    // On a busy machine some frames are missing, but the samples that were played must be the tone.
    let seconds = received.len() as f64 / f64::from(SAMPLE_RATE);
    let rises = received.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
    let frequency = rises as f64 / seconds;
    println!("a tone of {frequency:.0} Hz was received for {seconds:.1} s");
    if seconds < 0.2 || !(380.0..500.0).contains(&frequency) {
        return Err("it was another tone".into());
    }
    Ok(())
}
