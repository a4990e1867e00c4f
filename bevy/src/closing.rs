//! Keeps endpoints of removed resources alive until their last messages are acknowledged or time out.

use std::sync::mpsc::{Receiver, Sender, channel};

use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use rakwire_native::{RakNet, polled};

type Endpoint = polled::Endpoint<RakNet>;

/// The endpoint of a resource. When the resource is dropped, the endpoint moves to [`Closing`].
pub(crate) struct Owned {
    /// `None` only during `drop`.
    endpoint: Option<SyncCell<Endpoint>>,
    heir: Option<Sender<Endpoint>>,
}

impl Owned {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint: Some(SyncCell::new(endpoint)), heir: None }
    }

    pub(crate) fn get(&mut self) -> &mut Endpoint {
        self.endpoint.as_mut().expect("the endpoint is taken only by `drop`").get()
    }

    /// Sets the list that receives the endpoint when the resource is dropped.
    pub(crate) fn leave_to(&mut self, closing: &Closing) {
        if self.heir.is_none() {
            self.heir = Some(closing.sender.clone());
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let Some(mut endpoint) = self.endpoint.take().map(SyncCell::to_inner) else { return };
        let all: Vec<_> = endpoint.peer().connections().collect();
        all.into_iter().for_each(|id| endpoint.disconnect(id));
        endpoint.flush();
        if let Some(heir) = &self.heir {
            // If the app no longer exists, the socket closes immediately.
            let _ = heir.send(endpoint);
        }
    }
}

/// Endpoints that deliver their last messages before they close.
#[derive(Resource)]
pub(crate) struct Closing {
    sender: Sender<Endpoint>,
    arriving: SyncCell<Receiver<Endpoint>>,
    endpoints: SyncCell<Vec<Endpoint>>,
}

impl Default for Closing {
    fn default() -> Self {
        let (sender, arriving) = channel();
        Self { sender, arriving: SyncCell::new(arriving), endpoints: SyncCell::new(Vec::new()) }
    }
}

/// Polls closing endpoints once per frame. Both the server and the client plugin add this plugin.
pub(crate) struct ClosingPlugin;

impl ClosingPlugin {
    pub(crate) fn add_once(app: &mut App) {
        if !app.is_plugin_added::<Self>() {
            app.add_plugins(Self);
        }
    }
}

impl Plugin for ClosingPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Closing>().add_systems(Last, go_on);
    }
}

fn go_on(mut closing: ResMut<Closing>) {
    let closing = &mut *closing;
    let endpoints = closing.endpoints.get();
    endpoints.extend(closing.arriving.get().try_iter());
    endpoints.retain_mut(|endpoint| {
        endpoint.update();
        while endpoint.poll_event().is_some() {}
        endpoint.connections() > 0
    });
}
