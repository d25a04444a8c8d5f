//! The screen, and its drawing.

use std::path::PathBuf;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, TableState};

use crate::command::top::model::Model;
use crate::command::top::session::SessionEvent;
use crate::command::top::{TopArgs, flame_graph};
use crate::exit::{Failure, Outcome};
use crate::record::watch::{WatchView, WatchedProcess};
use crate::render::list_screen;
use crate::render::messages;
use crate::render::screen::{Screen, draw_box};

/// The keys and their actions.
const HELP: &str = "\
 tab, 1 to 6  methods, threads, allocations, collections, exceptions, in use
 up, down     choose a row          page up, page down, home, end too
 enter        the callers of the method; again, of the caller; esc goes back
 s            methods and callers by self time or by total time
 a            everything since the start, or the last interval
 /            show only rows that contain a text; esc shows all
 left, right  another process, if there are several
 w            write a flame graph of all samples
 p            pause or resume
 q, ctrl-c    quit
 ?            close this

 SELF is the time of samples in which the method itself ran, TOTAL that in
 which it was on the stack. Threads that wait for work are left out.";

/// The width of a column of numbers.
const NUMBER: u16 = 9;
/// Minimum width of names: columns of numbers give way, the last one first.
const MIN_NAME_WIDTH: u16 = 24;

/// The activity of processes on a screen that is redrawn as intervals arrive, and as keys are pressed.
pub(super) struct TopScreen {
    /// `None` until the session runs, so that a failure to start it is printed where the user typed the
    /// command.
    screen: Option<Screen>,
    model: Model,
    output: Option<PathBuf>,
}

impl TopScreen {
    pub(super) fn new(args: &TopArgs) -> Self {
        Self {
            screen: None,
            model: Model::new(args.refresh_interval, args.sort),
            output: args.output.clone(),
        }
    }

    fn write_flame_graph(&self) -> Result<(), Failure> {
        let Some(history) = self.model.shown() else { return Ok(()) };
        flame_graph::write(history, self.output.as_deref(), self.model.histories().len() > 1)
    }
}

impl WatchView<SessionEvent> for TopScreen {
    fn receive(&mut self, event: SessionEvent) -> Result<(), Failure> {
        match event {
            SessionEvent::Begun(process, features) => {
                self.model.begin(&process, features);
                if self.screen.is_none() {
                    self.screen = Some(Screen::open()?);
                }
            }
            SessionEvent::Interval(number, interval) => self.model.add(number, *interval),
        }
        Ok(())
    }

    fn end(&mut self, process: &WatchedProcess) -> Result<(), Failure> {
        self.model.end(process.number);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let Some(screen) = &mut self.screen else { return Ok(()) };
        list_screen::update(screen, &mut self.model, draw)?;
        if self.model.take_flame_graph_request()
            && let Err(failure) = self.write_flame_graph()
        {
            // A failure here does not stop the watching.
            messages::warning(failure);
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.model.list.is_done()
    }

    fn finish(&mut self, outcome: Outcome) -> Outcome {
        self.screen = None;
        let exit = outcome?;
        if self.output.is_some() {
            let histories = self.model.histories();
            let is_one_of_many = histories.len() > 1;
            histories
                .iter()
                .try_for_each(|it| flame_graph::write(it, self.output.as_deref(), is_one_of_many))?;
        }
        Ok(exit)
    }
}

/// Draws the whole screen.
fn draw(frame: &mut Frame<'_>, model: &mut Model) {
    let line = Constraint::Length(1);
    let [title, counters, sums, heading, table, keys] =
        Layout::vertical([line, line, line, line, Constraint::Min(1), line]).areas(frame.area());
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(model.title()).style(reversed), title);
    for (text, area) in model.summary().into_iter().zip([counters, sums]) {
        frame.render_widget(Paragraph::new(format!(" {text}")), area);
    }
    frame.render_widget(
        Paragraph::new(model.heading()).style(Style::new().add_modifier(Modifier::BOLD)),
        heading,
    );
    draw_table(frame, table, model);
    frame.render_widget(Paragraph::new(model.keys()), keys);
    if model.list.shows_help {
        draw_box(frame, &format!("\n{HELP}"), 78);
    }
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    // One line is the heading.
    let page = usize::from(area.height.saturating_sub(1)).max(1);
    if model.table.rows.is_empty() {
        let reason = format!("\n {}", model.reason_for_nothing());
        frame.render_widget(Paragraph::new(reason), area);
        return;
    }
    let room = usize::from(area.width.saturating_sub(MIN_NAME_WIDTH) / (NUMBER + 1));
    let columns = room.min(model.table.head.len());
    let shown = u16::try_from(columns).unwrap_or(u16::MAX);
    let name = usize::from(area.width.saturating_sub(shown.saturating_mul(NUMBER + 1)));
    let first = model.list.scroll(model.table.rows.len(), page);
    let cells = |numbers: &mut dyn Iterator<Item = String>, name: String| {
        let numbers = numbers.take(columns).map(|number| Line::from(number).right_aligned());
        Row::new(numbers.chain([Line::from(name)]).collect::<Vec<_>>())
    };
    // Only visible rows are built.
    let rows = model.table.rows.iter().skip(first).take(page);
    let rows: Vec<_> = rows.map(|row| cells(&mut row.cells.iter().cloned(), row.name(name))).collect();
    let mut widths = vec![Constraint::Length(NUMBER); columns];
    widths.push(Constraint::Min(1));
    let head =
        cells(&mut model.table.head.iter().map(|head| (*head).to_owned()), model.table.name.to_owned());
    let table = Table::new(rows, widths)
        .header(head.style(Style::new().add_modifier(Modifier::BOLD)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected(model.list.selected.saturating_sub(first));
    frame.render_stateful_widget(table, area, &mut state);
}

#[cfg(test)]
mod tests;
