//! A board that computes, or writes to its flash, for longer than the idle timeout.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use rakwire_embassy::Runner;

use crate::support::{Machine, Net, PORT, Tested, Wire, bytes, connect, message, run, until};

/// The idle timeout. It is longer than the time between two polls of a task on a busy machine.
const TIMEOUT: Duration = Duration::from_millis(300);
/// The pause of the board.
const PAUSE: Duration = Duration::from_millis(400);
/// The number of polls of other tasks after which every datagram in flight has arrived in a socket.
const SETTLED: usize = 500;

/// Suspends the task of a peer.
#[derive(Clone, Default)]
struct Gate {
    /// The number of polls until the task is suspended; `None` for never.
    polls: Rc<Cell<Option<u32>>>,
    waker: Rc<RefCell<Option<Waker>>>,
}

impl Gate {
    async fn run<P: Tested>(self, mut runner: Runner<'static, P>) {
        let mut running = pin!(runner.run());
        poll_fn(|cx| {
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            match self.polls.get() {
                Some(0) => return Poll::Pending,
                Some(polls) => self.polls.set(Some(polls - 1)),
                None => {}
            }
            running.as_mut().poll(cx).map(|never| never)
        })
        .await
    }

    /// Suspends the task after this many polls.
    fn close_after(&self, polls: u32) {
        self.polls.set(Some(polls));
    }

    fn open(&self) {
        self.polls.set(None);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

async fn settle() {
    for _ in 0..SETTLED {
        tokio::task::yield_now().await;
    }
}

/// Returns the number of datagrams that a machine has sent.
fn sent<P: Tested>(machine: &Machine<P>) -> u64 {
    machine.handle.stats().datagrams_sent
}

/// More datagrams wait in the socket than the task reads in one poll. The last datagram is the only one from its
/// sender.
pub(crate) fn queued_datagrams_are_read_before_a_connection_times_out<P: Tested>() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let (server, runner) = net.idle_machine::<P, 2, 64, 128, 4>(PORT, |config| {
            *P::max_incoming(config) = 2;
            P::set_timeout(config, TIMEOUT);
        });
        let gate = Gate::default();
        tokio::task::spawn_local(gate.clone().run(runner));
        let (first, second) = (net.client::<P, 1, 48, 128, 8>(), net.client::<P, 1, 48, 128, 8>());
        let (noisy, to_noisy) = connect(&first, &server).await;
        let (quiet, to_quiet) = connect(&second, &server).await;
        settle().await;
        // The server waits for acknowledgements from both clients.
        for connection in [&to_noisy, &to_quiet] {
            connection.try_send(&message(0, 9), P::RELIABLE).expect("a free slot");
        }
        gate.close_after(1);
        assert!(noisy.recv().await.is_some());
        for number in 1..11 {
            let before = sent(&first);
            noisy.send(&message(number, 9), P::UNRELIABLE).await.expect("an open connection");
            until(|| sent(&first) > before).await;
        }
        settle().await;
        assert!(quiet.recv().await.is_some());
        quiet.send(&message(1, 9), P::UNRELIABLE).await.expect("an open connection");
        settle().await;
        std::thread::sleep(PAUSE);
        gate.open();
        assert_eq!(bytes(&to_quiet.recv().await.expect("an open connection")), message(1, 9));
        settle().await;
        assert!(to_quiet.closed_reason().is_none() && to_noisy.closed_reason().is_none());
    });
}

/// After a pause the peer's task may be polled before the tasks that move received datagrams to its socket.
pub(crate) fn datagrams_in_the_network_stack_are_read_before_a_connection_times_out<P: Tested>() {
    for polls in 0..12 {
        run(async {
            let mut net = Net::new(Wire::losing(0));
            let server = net.machine::<P, 1, 48, 128, 4>(PORT, |config| {
                *P::max_incoming(config) = 1;
                P::set_timeout(config, TIMEOUT);
            });
            let client = net.client::<P, 1, 48, 128, 8>();
            let (here, there) = connect(&client, &server).await;
            settle().await;
            there.try_send(&message(0, 9), P::RELIABLE).expect("enough space");
            here.try_send(&message(1, 9), P::RELIABLE).expect("enough space");
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
            std::thread::sleep(PAUSE);
            assert_eq!(bytes(&there.recv().await.expect("an open connection")), message(1, 9), "{polls}");
            settle().await;
            assert!(there.closed_reason().is_none(), "{polls}");
            drop((here, client));
        });
    }
}
