//! Screens: the terminal that is drawn on, its keys, and parts shared by several screens.

use std::borrow::Cow;
use std::io;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use ratatui::crossterm::event::{self, Event};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Clear, Paragraph};
use ratatui::{DefaultTerminal, Frame};
use unicode_width::UnicodeWidthStr as _;

use crate::exit::{Exit, Failure};
use crate::render::messages::{self, Hold};
use crate::render::output;

/// The terminal while it is drawn on. Dropping this restores it.
pub(crate) struct Screen {
    terminal: DefaultTerminal,
    input: Receiver<io::Result<Event>>,
    /// Holds messages back while the screen is shown.
    _hold: Hold,
}

impl Screen {
    pub(crate) fn open() -> Result<Self, Failure> {
        let hold = messages::hold();
        let terminal = ratatui::try_init().map_err(|error| cannot_draw(&error))?;
        Ok(Self { terminal, input: read_input(), _hold: hold })
    }

    /// Takes the keys and sizes received since the last call.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(crate) fn take_input(&self) -> Result<Vec<Event>, Failure> {
        if output::is_closed() {
            return Err(Failure::closed_output());
        }
        self.input.try_iter().map(|event| event.map_err(|error| cannot_draw(&error))).collect()
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        self.terminal.draw(draw).map(|_| ()).map_err(|error| cannot_draw(&error))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Reads keys and sizes on a thread of its own: once the terminal is gone, the read never returns, and
/// neither does a poll for input.
fn read_input() -> Receiver<io::Result<Event>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        loop {
            let event = event::read();
            let is_last = event.is_err();
            if sender.send(event).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

fn cannot_draw(error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("write: the terminal: {error}"))
        .with_help("--plain prints lines instead")
}

/// Draws a multi-line text in the middle, over the present content; what does not fit is cut.
pub(crate) fn draw_box(frame: &mut Frame<'_>, text: &str, width: u16) {
    let area = frame.area();
    let lines = u16::try_from(text.lines().count()).unwrap_or(u16::MAX);
    let (width, height) = (width.min(area.width), lines.saturating_add(1).min(area.height));
    let place = Rect {
        x: area.width.saturating_sub(width) / 2,
        y: area.height.saturating_sub(height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    let style = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(Text::from(text)).style(style), place);
}

/// Returns the end of a string that fits in `width` columns: names share their beginnings.
pub(crate) fn end_of(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let ends = text.char_indices().map(|(start, _)| &text[start..]);
    let end = ends.into_iter().find(|end| end.width() < width).unwrap_or_default();
    Cow::Owned(format!("…{end}"))
}
