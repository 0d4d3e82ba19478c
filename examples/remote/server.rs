//! The server: it lends a device, and counts what its clients ask for.

use std::net::TcpListener;
use std::time::Duration;

use burn::server::telemetry::{DrainStatus, TelemetryEvent, TelemetryProbe, TelemetrySubscription};
use burn::server::{RemoteServer, TokenAuthorizer, WebSocketTransport};
use burn::tensor::Device;

use crate::Outcome;

/// Lends the default device at `address` until the process is interrupted.
pub fn serve(address: &str, token: Option<&str>) -> Outcome<()> {
    let listener = TcpListener::bind(address)?;
    let device = Device::default();
    println!("server: lends {device:?} at ws://{}", listener.local_addr()?);
    let (probe, events) = TelemetryProbe::channel(1 << 16);
    std::thread::spawn(move || count(events));
    let mut server = RemoteServer::new([device]).with_telemetry(probe);
    if let Some(token) = token {
        server = server.with_authorizer(TokenAuthorizer::new(token)?);
    }
    Ok(server.serve(WebSocketTransport::from_listener(listener))?)
}

/// Prints, as each client leaves, what was done since the one before.
fn count(mut events: TelemetrySubscription) {
    let (mut operations, mut reads, mut missed) = (0u64, 0u64, 0u64);
    let mut seen = Vec::new();
    while let DrainStatus::Open { lagged } = events.drain_into(&mut seen) {
        missed += lagged;
        for event in seen.drain(..) {
            match &*event {
                TelemetryEvent::Op { .. } | TelemetryEvent::GraphExecuted { .. } => operations += 1,
                TelemetryEvent::Read { .. } | TelemetryEvent::Sync { .. } => reads += 1,
                TelemetryEvent::SessionClosed { .. } => {
                    println!(
                        "server: {operations} operations, {reads} reads by the client ({missed} events missed)"
                    );
                    (operations, reads, missed) = (0, 0, 0);
                }
                _ => {}
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
