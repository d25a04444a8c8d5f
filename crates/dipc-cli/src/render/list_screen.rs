//! A screen with a list of rows: the state and the keys that all such screens share.

use std::mem;

use ratatui::Frame;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::exit::Failure;
use crate::render::escape::escape_controls;
use crate::render::messages;
use crate::render::screen::Screen;

/// Maximum length of a filter.
const MAX_FILTER_LENGTH: usize = 200;

/// The content of a screen with a list of rows.
pub(crate) trait ListScreen {
    fn list(&mut self) -> &mut ListState;

    /// Handles a key.
    fn press(&mut self, key: KeyEvent);
}

/// Handles the keys that were pressed, and draws the screen if something changed.
pub(crate) fn update<S: ListScreen>(
    screen: &mut Screen,
    shown: &mut S,
    draw: impl FnOnce(&mut Frame<'_>, &mut S),
) -> Result<(), Failure> {
    let list = shown.list();
    list.has_changed |= list.message.set(messages::last_held());
    for event in screen.take_input()? {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => shown.press(key),
            Event::Resize(..) => shown.list().has_changed = true,
            _ => {}
        }
    }
    if mem::replace(&mut shown.list().has_changed, false) {
        screen.draw(|frame| draw(frame, shown))?;
    }
    Ok(())
}

/// The list, and the user's choices.
#[derive(Debug)]
pub(crate) struct ListState {
    /// The index of the chosen row.
    pub(crate) selected: usize,
    /// The first row that is shown.
    first_row: usize,
    /// The number of rows that fit on the screen.
    page: usize,
    /// Only rows that contain this are shown; empty for all.
    pub(crate) filter: String,
    is_typing: bool,
    pub(crate) is_paused: bool,
    pub(crate) shows_help: bool,
    /// The last message, until a key is pressed.
    message: LastMessage,
    pub(crate) has_changed: bool,
    is_done: bool,
}

impl ListState {
    pub(crate) fn new() -> Self {
        Self {
            selected: 0,
            first_row: 0,
            page: 1,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            shows_help: false,
            message: LastMessage::default(),
            has_changed: true,
            is_done: false,
        }
    }

    /// Handles a key of a list of `rows` rows. Returns the key if it is not one of those that all screens
    /// have.
    pub(crate) fn press(&mut self, key: KeyEvent, rows: usize) -> Option<KeyCode> {
        self.has_changed = true;
        self.message.dismiss();
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            self.is_done = true;
        } else if self.is_typing {
            self.type_filter(key.code);
        } else {
            return self.command(key.code, rows.saturating_sub(1));
        }
        None
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char(character) if !character.is_control() && self.filter.len() < MAX_FILTER_LENGTH => {
                self.filter.push(character);
            }
            _ => {}
        }
    }

    fn command(&mut self, key: KeyCode, last: usize) -> Option<KeyCode> {
        match key {
            KeyCode::Char('q') => self.is_done = true,
            KeyCode::Char('p' | 'P') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('?' | 'h') => self.shows_help = !self.shows_help,
            KeyCode::Esc if self.shows_help => self.shows_help = false,
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = self.selected.saturating_add(1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(self.page),
            KeyCode::PageDown => self.selected = self.selected.saturating_add(self.page).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            other => return Some(other),
        }
        None
    }

    /// Scrolls so that the chosen row is among the `room` of `rows` rows that are shown, and no line stays
    /// empty that a row could fill. Returns the first row that is shown.
    pub(crate) fn scroll(&mut self, rows: usize, room: usize) -> usize {
        let first = self.first_row.min(self.selected).min(rows.saturating_sub(room));
        self.first_row = first.max((self.selected + 1).saturating_sub(room));
        self.page = room;
        self.first_row
    }

    /// The line at the bottom: what is being typed, the last message, or the keys with the order of the rows.
    pub(crate) fn keys_line(&self, keys: &str, order: &str) -> String {
        if self.is_typing {
            return format!(" show only: {}_", self.filter);
        }
        if let Some(message) = self.message.get() {
            return format!(" {message}");
        }
        let filter =
            if self.filter.is_empty() { String::new() } else { format!(" · only '{}'", self.filter) };
        format!(" {keys}   by {order}{filter}")
    }

    pub(crate) const fn is_done(&self) -> bool {
        self.is_done
    }
}

/// The last message held back while a screen is shown.
#[derive(Debug, Default)]
struct LastMessage {
    /// The number of messages up to this one.
    count: usize,
    text: String,
}

impl LastMessage {
    /// Stores the last of `count` messages if it is new. Returns whether it is.
    fn set(&mut self, (count, message): (usize, String)) -> bool {
        let is_new = count > self.count;
        if is_new {
            self.count = count;
            self.text = escape_controls(&message).into_owned();
        }
        is_new
    }

    /// Returns the message, unless it was dismissed.
    fn get(&self) -> Option<&str> {
        Some(&*self.text).filter(|text| !text.is_empty())
    }

    /// Dismisses the message.
    fn dismiss(&mut self) {
        self.text.clear();
    }
}
