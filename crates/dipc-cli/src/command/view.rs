//! `dipc view`: the page of a recording, served to a browser on this machine.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use dipc_http::{Content, Site, SiteServer};
use hyper::body::Bytes;
use uuid::Uuid;

use crate::args::profile::{MetricArg, ProfileArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::export::{Export, ExportFormat};
use crate::interrupt::Interrupts;
use crate::render::{browser, messages, output};

/// Bytes of a page that is not sent by mail: less is summed up or left out than of a file.
const BUDGET: u64 = 48_000_000;
/// The wait between two checks for an interrupt.
const TICK: Duration = Duration::from_secs(3600);

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Port of 127.0.0.1 to listen on [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Metric of the flame graph
    #[arg(long, value_enum)]
    pub(crate) by: Option<MetricArg>,
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
}

pub(crate) fn run(args: &ViewArgs) -> Outcome {
    let interrupts = Interrupts::watch()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Failed, format_args!("view: {address}: {error}"))
            .with_help("--port chooses another port")
    };
    // A port that is taken is reported before the work.
    let listener = TcpListener::bind(address).map_err(failed)?;
    let profile = args.profile.options(&args.file)?;
    let export = Export {
        metric: args.by.map(MetricArg::metric),
        profile,
        ..Export::beside(&args.file, ExportFormat::Page, args.profile.names.form())
    };
    let (exit, page) = interrupts.while_computing(|| export.page(BUDGET))?;
    let path = format!("/{}{}/", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let site = PageSite { path: path.clone(), page: page.into() };
    let server = SiteServer::start(listener, site).map_err(failed)?;
    let url = format!("http://{}{path}", server.address());
    output::print(format_args!("{url}\n"))?;
    messages::note("Serving the page to this machine until Ctrl-C; the address is its only key");
    if args.open {
        browser::open_url(&url);
    }
    while !interrupts.wait(TICK) {}
    server.stop();
    Ok(exit)
}

/// The page, at a path that cannot be guessed: other users of the machine can connect, too.
struct PageSite {
    path: String,
    page: Bytes,
}

impl Site for PageSite {
    const HINT: &'static str = "the page is at the address that dipc view printed\n";

    fn has(&self, path: &str) -> bool {
        path == self.path
    }

    fn content(&self, _: &str, _: Option<&str>) -> Content {
        Content { body: self.page.clone(), media_type: "text/html; charset=utf-8", is_private: true }
    }
}
