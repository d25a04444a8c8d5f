//! The content of the screen: the processes, and the user's choices.

use std::fmt::Write as _;
use std::time::Duration;

use dipc_collect::live::Interval;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use crate::command::top::MethodOrder;
use crate::command::top::history::History;
use crate::command::top::session::Features;
use crate::command::top::view::{self, Choice, View, ViewTable};
use crate::record::watch::WatchedProcess;
use crate::render::list_screen::{ListScreen, ListState};
use crate::render::units;

/// Maximum depth of callers to follow.
const MAX_DEPTH: usize = 256;

/// The state of the screen.
pub(super) struct Model {
    length: Duration,
    processes: Vec<History>,
    /// The index of the process shown.
    chosen: usize,
    pub(super) view: View,
    order: MethodOrder,
    since_start: bool,
    /// The opened methods: the first method with callers opened, then the caller opened below it, and so on.
    path: Vec<PathMethod>,
    /// The table shown.
    pub(super) table: ViewTable,
    pub(super) list: ListState,
    /// True if a flame graph was requested.
    wants_flame_graph: bool,
}

/// A method shown with its callers.
#[derive(Debug)]
struct PathMethod {
    /// The runtime's name, to find the method again in the next interval.
    method: String,
    /// The name as the table shows it.
    title: String,
    /// The row that was chosen before the callers were shown.
    selected: usize,
}

impl Model {
    pub(super) fn new(length: Duration, order: MethodOrder) -> Self {
        Self {
            length,
            processes: Vec::new(),
            chosen: 0,
            view: View::Methods,
            order,
            since_start: false,
            path: Vec::new(),
            table: ViewTable::default(),
            list: ListState::new(),
            wants_flame_graph: false,
        }
    }

    /// Called when the session of a process runs.
    pub(super) fn begin(&mut self, process: &WatchedProcess, features: Features) {
        self.processes.push(History::new(process, features));
        // Without samples, the view of methods is empty.
        if self.processes.len() == 1 && !features.samples {
            self.view = View::Collections;
        }
        self.list.has_changed = true;
    }

    /// Adds an interval; while the screen is paused, it is only added to the sums.
    pub(super) fn add(&mut self, number: usize, interval: Interval) {
        let Some(history) = self.processes.iter_mut().find(|history| history.process.number == number) else {
            return;
        };
        history.sums.add(&interval);
        if !self.list.is_paused {
            history.latest = Some(interval);
            self.refresh();
        }
    }

    /// Called when the session of a process has ended: its data stays on the screen.
    pub(super) fn end(&mut self, number: usize) {
        let ended = self.processes.iter_mut().filter(|history| history.process.number == number);
        ended.for_each(|history| history.has_ended = true);
        self.list.has_changed = true;
    }

    /// The process that is shown.
    pub(super) fn shown(&self) -> Option<&History> {
        self.processes.get(self.chosen)
    }

    /// All processes.
    pub(super) fn histories(&self) -> &[History] {
        &self.processes
    }

    /// Rebuilds the table.
    fn refresh(&mut self) {
        let filter = self.list.filter.to_lowercase();
        let choice = Choice { order: self.order, filter: &filter, since_start: self.since_start };
        let path: Vec<_> = self.path.iter().map(|it| it.method.clone()).collect();
        let table = self.shown().map(|history| view::table(history, self.view, &path, choice));
        self.table = table.unwrap_or_default();
        self.list.selected = self.list.selected.min(self.table.rows.len().saturating_sub(1));
        self.list.has_changed = true;
    }

    /// The line at the top.
    pub(super) fn title(&self) -> String {
        let Some(history) = self.shown() else { return " waiting for the session".to_owned() };
        let mut parts = vec![history.process.title()];
        if history.has_ended {
            parts[0].push_str(" (ended)");
        }
        if self.processes.len() > 1 {
            let _ = write!(parts[0], ", {} of {}", self.chosen + 1, self.processes.len());
        }
        parts.push(if self.since_start {
            format!("since the start, {:.0} s", history.sums.length.as_secs_f64())
        } else {
            format!("every {} s", self.length.as_secs_f64())
        });
        parts.extend(history.latest.as_ref().map(|interval| units::time_of_day(interval.time)));
        parts.extend(self.list.is_paused.then(|| "paused".to_owned()));
        format!(" {}", parts.join(" · "))
    }

    /// The counters and sums.
    pub(super) fn summary(&self) -> [String; 2] {
        self.shown().map(view::summary).unwrap_or_default()
    }

    /// The subject of the table: the views, or the method with its callers.
    pub(super) fn heading(&self) -> String {
        if self.view == View::Methods && !self.path.is_empty() {
            let names: Vec<_> = self.path.iter().rev().map(|it| it.title.as_str()).collect();
            return format!(" callers of {}", names.join(" → "));
        }
        let names = View::ALL.map(|view| {
            if view == self.view { format!("[{}]", view.name()) } else { format!(" {} ", view.name()) }
        });
        format!(" {}", names.join(" "))
    }

    /// The explanation of an empty table.
    pub(super) fn reason_for_nothing(&self) -> &'static str {
        match (self.shown(), self.view) {
            (Some(history), View::Methods | View::Threads)
                if !(history.features.samples
                    || self.view == View::Threads && history.features.thread_uses) =>
            {
                "NativeAOT has no sampler, and dipc doctor says why the kernel may not sample it"
            }
            (Some(history), View::InUse) if !history.features.objects => {
                "types in use are shown with dipc top --live-alloc"
            }
            (Some(history), View::Types) if !history.features.allocations => {
                "allocated types are shown with dipc top --alloc"
            }
            (Some(_), _) if !self.list.filter.is_empty() => "nothing matches the filter: esc shows all",
            (Some(_), View::InUse) => "no collection has found an object that was allocated since the start",
            (Some(history), View::Methods) if history.latest.is_some() => {
                "no thread worked, except those that wait for work"
            }
            (Some(history), _) if history.latest.is_some() => "none in this time",
            _ => "",
        }
    }

    /// The line at the bottom.
    pub(super) fn keys(&self) -> String {
        let order = match self.order {
            MethodOrder::Exclusive => "self",
            MethodOrder::Inclusive => "total",
        };
        self.list.keys_line("tab view  s sort  / filter  enter callers  w write  q quit  ? help", order)
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.path.clear();
        self.list.selected = 0;
    }

    fn choose(&mut self, process: usize) {
        if process < self.processes.len() && process != self.chosen {
            self.chosen = process;
            self.path.clear();
        }
    }

    /// Shows the callers of the chosen method.
    fn drill(&mut self) {
        let chosen = self.table.rows.get(self.list.selected);
        let method = chosen.and_then(|row| Some((row.method.clone()?, row.title())));
        if let Some((method, title)) = method.filter(|_| self.path.len() < MAX_DEPTH) {
            self.path.push(PathMethod { method, title, selected: self.list.selected });
            // The filter applied to the list of methods.
            self.list.filter.clear();
            self.list.selected = 0;
        }
    }

    /// Returns true if a flame graph was requested since the last call.
    pub(super) const fn take_flame_graph_request(&mut self) -> bool {
        std::mem::replace(&mut self.wants_flame_graph, false)
    }
}

impl ListScreen for Model {
    fn list(&mut self) -> &mut ListState {
        &mut self.list
    }

    fn press(&mut self, key: KeyEvent) {
        match self.list.press(key, self.table.rows.len()) {
            Some(KeyCode::Char('s')) => {
                self.order = match self.order {
                    MethodOrder::Exclusive => MethodOrder::Inclusive,
                    MethodOrder::Inclusive => MethodOrder::Exclusive,
                };
            }
            Some(KeyCode::Char('a')) => self.since_start = !self.since_start,
            Some(KeyCode::Char('w')) => self.wants_flame_graph = true,
            Some(KeyCode::Tab) => self.show(self.view.next()),
            Some(KeyCode::Char(digit @ '1'..='6')) => {
                let place = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(1);
                self.show(View::ALL.get(place - 1).copied().unwrap_or(View::Methods));
            }
            Some(KeyCode::Esc | KeyCode::Backspace) if !self.path.is_empty() => {
                self.list.selected = self.path.pop().map_or(0, |it| it.selected);
            }
            Some(KeyCode::Esc) => self.list.filter.clear(),
            Some(KeyCode::Enter) => self.drill(),
            Some(KeyCode::Left) => self.choose(self.chosen.saturating_sub(1)),
            Some(KeyCode::Right) => self.choose(self.chosen.saturating_add(1)),
            _ => {}
        }
        self.refresh();
    }
}
