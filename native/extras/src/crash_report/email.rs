//! Crash reports by email.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use lettre::message::{Mailbox, header::ContentType};
use lettre::{Message, SmtpTransport, Transport};

use super::{CrashReports, MAX_EMAIL, cut};

/// Time limit for each step of the SMTP dialogue.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The pause before the first retry. It doubles after each failure.
const FIRST_WAIT: Duration = Duration::from_secs(60);
/// The maximum pause between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// The reason why reports cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CrashEmailError {
    /// The server is not a URL such as `smtps://user:password@example.com`.
    #[error("the email server must be a URL such as smtps://user:password@example.com")]
    Server,
    /// An address is invalid.
    #[error("{0:?} is not an email address such as Server <server@example.com>")]
    Address(String),
    /// The report cannot be read, sent or marked as sent.
    #[error("a crash report could not be sent: {0}")]
    Failed(String),
}

/// The destination of reports.
///
/// ```
/// use rakwire_extras::crash_report::CrashEmail;
///
/// let email = CrashEmail::new("smtps://game:secret@example.com", "game@example.com", "us@example.com")?;
/// assert!(!format!("{email:?}").contains("secret"));
/// # Ok::<(), rakwire_extras::crash_report::CrashEmailError>(())
/// ```
#[derive(Clone)]
pub struct CrashEmail {
    transport: SmtpTransport,
    from: Mailbox,
    to: Mailbox,
}

/// Omits the server, because its URL contains the password.
impl fmt::Debug for CrashEmail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, transport: _ } = self;
        f.debug_struct("CrashEmail").field("from", from).field("to", to).finish_non_exhaustive()
    }
}

impl CrashEmail {
    /// Creates a destination with the SMTP server at a URL.
    ///
    /// The URL is `smtps://user:password@host` with TLS, `smtp://host?tls=required` with STARTTLS, or `smtp://host`
    /// without encryption, for a server on the same machine.
    ///
    /// # Errors
    /// Returns an error if the URL or an address is invalid.
    pub fn new(server: &str, from: &str, to: &str) -> Result<Self, CrashEmailError> {
        let transport = SmtpTransport::from_url(server).map_err(|_| CrashEmailError::Server)?;
        let mailbox = |text: &str| text.parse().map_err(|_| CrashEmailError::Address(text.to_owned()));
        Ok(Self {
            transport: transport.timeout(Some(TIMEOUT)).build(),
            from: mailbox(from)?,
            to: mailbox(to)?,
        })
    }

    /// Sends a report. Blocks the thread until the server has accepted it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or the server does not accept it.
    pub fn send(&self, report: &Path) -> Result<(), CrashEmailError> {
        let failed = |reason: &dyn fmt::Display| CrashEmailError::Failed(reason.to_string());
        let text = fs::read_to_string(report).map_err(|error| failed(&error))?;
        let text = cut(&text, MAX_EMAIL).to_owned();
        let name = report.file_name().unwrap_or_default().to_string_lossy();
        let message = Message::builder().from(self.from.clone()).to(self.to.clone());
        let message = message.subject(format!("crash report {name}")).header(ContentType::TEXT_PLAIN);
        let message = message.body(text).map_err(|error| failed(&error))?;
        self.transport.send(&message).map_err(|error| failed(&error))?;
        Ok(())
    }
}

impl CrashReports {
    /// Sends all unsent reports, and every new one, from a thread that runs until the program exits.
    ///
    /// Failures are passed to `on_failure`. A failed report is retried after a minute, then at growing intervals of up
    /// to an hour, and at the next start of the program.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn send_by(
        &self,
        email: CrashEmail,
        on_failure: impl Fn(&CrashEmailError) + Send + 'static,
    ) -> std::io::Result<()> {
        let (listener, wake) = sync_channel(1);
        self.0.listen(listener);
        let reports = self.clone();
        let send = move || send_all(&reports, &email, &wake, &on_failure);
        std::thread::Builder::new().name("crash-email".to_owned()).spawn(send)?;
        Ok(())
    }
}

/// Runs until another listener replaces this one.
fn send_all(
    reports: &CrashReports,
    email: &CrashEmail,
    wake: &Receiver<()>,
    on_failure: &dyn Fn(&CrashEmailError),
) {
    let mut wait = FIRST_WAIT;
    loop {
        let woken = match send_unsent(reports, email) {
            Ok(()) => {
                wait = FIRST_WAIT;
                wake.recv().map_err(|_| RecvTimeoutError::Disconnected)
            }
            Err(error) => {
                on_failure(&error);
                let woken = wake.recv_timeout(wait);
                wait = (2 * wait).min(LONGEST_WAIT);
                woken
            }
        };
        if woken == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

fn send_unsent(reports: &CrashReports, email: &CrashEmail) -> Result<(), CrashEmailError> {
    let failed = |error: std::io::Error| CrashEmailError::Failed(error.to_string());
    for report in reports.unsent().map_err(failed)? {
        email.send(&report)?;
        reports.mark_as_sent(&report).map_err(failed)?;
    }
    Ok(())
}
