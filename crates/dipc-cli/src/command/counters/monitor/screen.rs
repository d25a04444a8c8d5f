//! The drawing of the screen.

use std::collections::VecDeque;
use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row as TableRow, Table, TableState};
use unicode_width::UnicodeWidthStr as _;

use super::model::{Model, Number, Row};
use crate::render::screen::{draw_box, end_of};
use crate::render::width::cut;

/// The keys and their actions.
const HELP: &str = "\
 up, down     choose a row          page up, page down, home, end too
 enter, d     all details of the row's last value; esc closes it
 space        fold the provider     f  all of them
 /            show only rows that contain a text; esc shows all
 s            order by importance, name, value or change
 c            processes in columns, or one after the other
 left, right  other processes, if not all fit
 p            pause or resume
 q, ctrl-c    quit
 ?            close this";

/// The main keys, which the last line names.
const KEYS: &str = "p pause  s sort  / filter  enter detail  q quit  ? help";

/// Minimum widths of columns. Wider values get more room: a number without its first digits is a different
/// number.
const VALUE: u16 = 15;
const CHANGE: u16 = 14;
const NAME: u16 = 16;
/// Minimum width of a process's values if several processes are shown side by side, and minimum width of
/// names there.
const PROCESS: u16 = 16;
const MIN_NAME_WIDTH: u16 = 28;
/// Minimum screen width for showing a trend.
const WIDTH_WITH_TREND: u16 = 60;

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model) {
    let [title, table, bottom] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    let mut heading = model.title();
    if model.list.is_paused {
        heading.push_str(" · paused");
    }
    let keys = model.list.keys_line(KEYS, model.order.name());
    frame.render_widget(Paragraph::new(heading).style(Style::new().add_modifier(Modifier::REVERSED)), title);
    draw_table(frame, table, model);
    frame.render_widget(Paragraph::new(keys), bottom);
    if model.shows_detail {
        draw_detail(frame, model);
    }
    if model.list.shows_help {
        draw_help(frame);
    }
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    // One line is the heading.
    let page = usize::from(area.height.saturating_sub(1)).max(1);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let count = model.rows().len();
    let first = model.list.scroll(count, page);
    // Only visible rows are built.
    let rows = model.rows();
    let shown: Vec<_> = rows.iter().skip(first).take(page).collect();
    let columns = Columns::of(model, &shown, area.width);
    let rows = shown.into_iter().map(|row| match row {
        Row::Group { title, is_folded, count, .. } => {
            let mark = if *is_folded { '+' } else { '-' };
            let count = if *is_folded { format!(" ({count})") } else { String::new() };
            TableRow::new([Line::from(format!("{mark} {title}{count}"))]).style(bold)
        }
        Row::Number(numbers) => TableRow::new(columns.cells(row, numbers)),
    });
    let table = Table::new(rows, columns.widths())
        .header(TableRow::new(columns.head.clone()).style(bold))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected(model.list.selected.saturating_sub(first));
    frame.render_stateful_widget(table, area, &mut state);
}

/// The columns of the table: name, value, change and trend, or one value per process.
struct Columns {
    head: Vec<Line<'static>>,
    /// The columns for a name, after the two that groups begin with.
    name: usize,
    /// The columns for a value.
    value: u16,
    /// The columns for changes; 0 if they are not shown.
    change: u16,
    /// The columns for trends; 0 if they are not shown.
    trend: u16,
    /// The processes that are shown side by side; `None` for a single process.
    processes: Option<Range<usize>>,
}

impl Columns {
    /// Returns the columns that these rows need in this width: trend and change give way to name and value.
    fn of(model: &Model, rows: &[&Row<'_>], width: u16) -> Self {
        let mut head = vec![Line::from("COUNTER")];
        let numbers = || rows.iter().filter_map(|row| row.numbers()).flatten().copied().flatten();
        let widest = |texts: &mut dyn Iterator<Item = String>, least: u16| {
            let widest = texts.map(|text| text.width()).max().unwrap_or(0);
            u16::try_from(widest).unwrap_or(u16::MAX).clamp(least, (width / 2).max(least))
        };
        if model.columns() == 1 {
            let value = widest(&mut numbers().map(Number::value), VALUE);
            let mut change = widest(&mut numbers().map(Number::change_text), CHANGE);
            let mut trend = if width >= WIDTH_WITH_TREND { (width / 6).clamp(8, 40) } else { 0 };
            // A space between columns, and two before a name.
            let name = |change: u16, trend: u16| width.saturating_sub(value + change + trend + 3 + 2);
            if name(change, trend) < NAME {
                trend = 0;
            }
            if name(change, trend) < NAME {
                change = 0;
            }
            head.push(Line::from("VALUE").right_aligned());
            head.extend((change > 0).then(|| Line::from("CHANGE").right_aligned()));
            head.extend((trend > 0).then(|| Line::from("TREND")));
            return Self {
                head,
                name: usize::from(name(change, trend)),
                value,
                change,
                trend,
                processes: None,
            };
        }
        let value = widest(&mut numbers().map(Number::value), PROCESS);
        let room = usize::from(width.saturating_sub(MIN_NAME_WIDTH) / (value + 1)).max(1);
        let first = model.first_process.min(model.columns().saturating_sub(room));
        let last = (first + room).min(model.columns());
        for title in model.column_titles().skip(first).take(last - first) {
            head.push(Line::from(end_of(&title, usize::from(value)).into_owned()).right_aligned());
        }
        let shown = u16::try_from(last - first).unwrap_or(u16::MAX);
        let name = usize::from(width.saturating_sub(shown.saturating_mul(value + 1) + 2));
        Self { head, name, value, change: 0, trend: 0, processes: Some(first..last) }
    }

    fn widths(&self) -> Vec<Constraint> {
        let mut widths = vec![Constraint::Fill(1)];
        if let Some(processes) = &self.processes {
            widths.extend(processes.clone().map(|_| Constraint::Length(self.value)));
        } else {
            let shown = [self.value, self.change, self.trend].into_iter().filter(|width| *width > 0);
            widths.extend(shown.map(Constraint::Length));
        }
        widths
    }

    fn cells(&self, row: &Row<'_>, numbers: &[Option<&Number>]) -> Vec<Line<'static>> {
        let Some(number) = row.number() else { return Vec::new() };
        // The widget would cut the beginning of a right-aligned line.
        let right = |text: String, width: u16| Line::from(cut(&text, usize::from(width))).right_aligned();
        let mut cells = vec![Line::from(format!("  {}", number.label(self.name)))];
        if let Some(processes) = &self.processes {
            let shown = numbers.iter().skip(processes.start).take(processes.len());
            let values = shown.map(|number| number.map(Number::value).unwrap_or_default());
            cells.extend(values.map(|value| right(value, self.value)));
        } else {
            cells.push(right(number.value(), self.value));
            cells.extend((self.change > 0).then(|| right(number.change_text(), self.change)));
            cells.push(Line::from(sparkline(&number.history, usize::from(self.trend))));
        }
        cells
    }
}

/// The last values as bars of eight heights, scaled from the minimum to the maximum.
fn sparkline(history: &VecDeque<f64>, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = history.iter().skip(history.len().saturating_sub(width));
    let finite = shown.clone().copied().filter(|value| value.is_finite());
    let (least, most) = finite
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    shown
        .map(|value| {
            let share = (value - least) / (most - least);
            if !value.is_finite() {
                return ' ';
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 7")]
            let height = if share.is_finite() { (share * 7.0).round() as usize } else { 0 };
            BARS.get(height).copied().unwrap_or(' ')
        })
        .collect()
}

fn draw_help(frame: &mut Frame<'_>) {
    draw_box(frame, &format!("\n{HELP}"), 72);
}

/// Shows all details of the chosen row's last value.
fn draw_detail(frame: &mut Frame<'_>, model: &Model) {
    if let Some(detail) = model.detail() {
        draw_box(frame, &format!("\n{}", detail.text()), 78);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clr_counters::{Kind, Measurement, MeterMeasurement, Sample, Series, SeriesId};
    use nettrace::RelativeTime;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};

    use super::*;
    use crate::inspect::counters::Clock;
    use crate::record::watch::WatchedProcess;
    use crate::render::list_screen::ListScreen as _;

    fn series(provider: &str, name: &str, unit: &str, tags: &str, kind: Kind) -> Series {
        let mut series = Series::new(provider, name, kind);
        series.process_id = Some(7);
        series.unit = unit.into();
        series.tags = tags.into();
        series
    }

    /// A model of three intervals.
    fn model() -> Model {
        let mut model = Model::new(Duration::from_secs(1));
        let process = WatchedProcess { number: 0, name: Some("we\u{1b}[31mb".into()), pid: Some(7) };
        model.begin(&process, Clock::of(None));
        let rows = [
            series("Shop", "order.size", "kg", "city=Oslo", Kind::Gauge),
            series("System.Runtime", "dotnet.gc.heap.total_allocated", "By", "", Kind::Counter),
            series("System.Runtime", "dotnet.assembly.count", "{assembly}", "", Kind::UpDownCounter),
        ];
        for second in 1..=3i32 {
            for (id, series) in (0..).zip(&rows) {
                let value = Some(f64::from(second * second));
                let measurement = Measurement::Meter(match series.kind {
                    Kind::Gauge => MeterMeasurement::Gauge { value },
                    Kind::Counter => MeterMeasurement::Counter {
                        increment: value.map(|value| value * 1e6),
                        total: value.map(|value| value * 1e9),
                    },
                    _ => MeterMeasurement::UpDownCounter { change: None, value: Some(17.0) },
                });
                model.add(
                    &process,
                    &Sample::new(
                        RelativeTime::after_start(Duration::from_secs(1)),
                        SeriesId(id),
                        series,
                        &measurement,
                    )
                    .with_interval(Duration::from_secs(1)),
                );
            }
        }
        model
    }

    /// Adds a value to a process.
    fn add(model: &mut Model, process: &WatchedProcess, series: &Series, id: u32, measurement: &Measurement) {
        model.add(
            process,
            &Sample::new(
                RelativeTime::after_start(Duration::from_secs(1)),
                SeriesId(id),
                series,
                measurement,
            )
            .with_interval(Duration::from_secs(2)),
        );
    }

    fn process(number: usize, pid: u32) -> WatchedProcess {
        WatchedProcess { number, name: Some("web".into()), pid: Some(pid) }
    }

    #[test]
    fn processes_are_side_by_side_or_one_after_the_other() {
        let mut model = Model::new(Duration::from_secs(1));
        let gauge = |value| Measurement::Meter(MeterMeasurement::Gauge { value: Some(value) });
        for (number, pid) in [(0, 101), (1, 102), (2, 103), (3, 104)] {
            let process = process(number, pid);
            model.begin(&process, Clock::of(None));
            add(
                &mut model,
                &process,
                &series("Shop", "stock", "", "", Kind::Gauge),
                0,
                &gauge(f64::from(pid)),
            );
        }
        add(&mut model, &process(2, 103), &series("Shop", "only", "", "", Kind::Gauge), 1, &gauge(5.0));
        model.end(&process(1, 102));
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let rows = |lines: &[String]| lines[1..6].iter().map(|line| squeezed(line)).collect::<Vec<_>>();
        let lines = drawn(&mut model, 200, 50);
        assert!(lines[0].starts_with(" 4 processes · every 1 s · 5 values · "), "{}", lines[0]);
        assert_eq!(
            rows(&lines),
            [
                "COUNTER web (101) web (102) (end… web (103) web (104)",
                "- Shop",
                "only 5",
                "stock 101 102 103 104",
                ""
            ]
            .map(|line| line.replace("web (102) (end…", "…b (102) (ended)"))
        );
        // Three fit in 80 columns; a key scrolls to the others.
        assert_eq!(rows(&drawn(&mut model, 80, 24))[3], "stock 101 102 103");
        press(&mut model, &[KeyCode::Right]);
        assert_eq!(rows(&drawn(&mut model, 80, 24))[3], "stock 102 103 104");
        press(&mut model, &[KeyCode::Char('c')]);
        let lines = drawn(&mut model, 80, 24);
        assert_eq!(rows(&lines)[1..3], ["- web (101) · Shop", "stock 101 ▁"]);
        assert_eq!(rows(&lines)[3..], ["- web (102) (ended) · Shop", "stock 102 ▁"]);
        // A restarted process keeps the place of its predecessor, but not its values.
        model.begin(&process(1, 202), Clock::of(None));
        press(&mut model, &[KeyCode::Char('c')]);
        let lines = drawn(&mut model, 200, 50);
        assert_eq!(rows(&lines)[0], "COUNTER web (101) web (202) web (103) web (104)");
        assert_eq!(rows(&lines)[3], "stock 101 103 104");
    }

    #[test]
    fn all_that_a_histogram_has_is_shown() {
        let mut model = Model::new(Duration::from_secs(1));
        let process = process(0, 7);
        model.begin(&process, Clock::of(None));
        let of = series("Shop", "size\u{1b}[2J", "kg", "city=Oslo", Kind::Histogram);
        let quantiles = vec![(0.5, 25.0), (0.95, 47.0), (0.99, 49.0)];
        let histogram = MeterMeasurement::Histogram { quantiles, count: Some(500), sum: Some(12_500.0) };
        add(&mut model, &process, &of, 0, &Measurement::Meter(histogram));
        drawn(&mut model, 80, 24);
        press(&mut model, &[KeyCode::Down, KeyCode::Enter]);
        let lines = drawn(&mut model, 80, 24).join("\n");
        for expected in [
            r"counter      size\u001b[2J",
            "kind         histogram in kg",
            "tags         city=Oslo",
            "interval     2.000 s",
            "measured     500, 250 /s",
            "sum          12,500 kg",
            "mean         25 kg",
            "quantiles    p50 25 kg, p95 47 kg, p99 49 kg",
        ] {
            assert!(lines.contains(expected), "{expected}:\n{lines}");
        }
        assert!(!lines.contains('\u{1b}'));
        // The buckets of 1, 2, 3, 4 and 5, as a test of dotnet/runtime has them.
        let mut histogram = clr_counters::ExponentialHistogram::default();
        (histogram.sum, histogram.count) = (15.0, 5);
        (histogram.min, histogram.max) = (1.0, 5.0);
        histogram.buckets = vec![1, 1, 2, 1];
        add(
            &mut model,
            &process,
            &of,
            0,
            &Measurement::Meter(MeterMeasurement::ExponentialHistogram(histogram)),
        );
        let lines = drawn(&mut model, 80, 24).join("\n");
        for expected in [
            "measured     5 since the session began",
            "quantiles    p50 4 kg, p90 5 kg, p95 5 kg, p99 5 kg, p99.9 5 kg",
            "≤ 1 kg ███████████████ 1",
            "≤ 4 kg ██████████████████████████████ 2",
            "≤ 8 kg ███████████████ 1",
        ] {
            assert!(lines.contains(expected), "{expected}:\n{lines}");
        }
        press(&mut model, &[KeyCode::Esc]);
        assert!(!drawn(&mut model, 80, 24).join("\n").contains("since the session"));
    }

    /// Numbers of any size, and more rows than lines.
    #[test]
    fn hostile_values_have_a_place() {
        let mut model = Model::new(Duration::from_secs(1));
        let process = process(0, 7);
        model.begin(&process, Clock::of(None));
        let long = "u".repeat(10_000);
        for (id, value) in (0..).zip([f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, -0.0]) {
            let of = series(&format!("M\u{1b}]0;x\u{7}{id}"), "n\r\n", &long, "k=\u{202e}v", Kind::Gauge);
            add(
                &mut model,
                &process,
                &of,
                id,
                &Measurement::Meter(MeterMeasurement::Gauge { value: Some(value) }),
            );
        }
        for id in 5..10_000 {
            let of = series("Many", "n", "", &format!("k={id}"), Kind::Gauge);
            let measurement = Measurement::Meter(MeterMeasurement::Gauge { value: Some(1.0) });
            add(&mut model, &process, &of, id, &measurement);
        }
        press(&mut model, &[KeyCode::End, KeyCode::Char('d')]);
        for (width, height) in [(80, 24), (200, 50), (3, 2)] {
            let lines = drawn(&mut model, width, height);
            let is_hostile = |character: char| character.is_control() || character == '\u{202e}';
            assert!(!lines.iter().any(|line| line.chars().any(is_hostile)), "{lines:?}");
        }
        press(&mut model, &[KeyCode::Char('d')]);
        assert!(drawn(&mut model, 80, 24)[22].contains("n k=9999"), "the last row is in sight");
    }

    fn drawn(model: &mut Model, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model)).unwrap();
        let buffer = terminal.backend().buffer();
        let lines = buffer.content().chunks(usize::from(width));
        lines
            .map(|line| {
                line.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
            })
            .collect()
    }

    fn press(model: &mut Model, keys: &[KeyCode]) {
        for key in keys {
            model.press(KeyEvent::from(*key));
        }
    }

    #[test]
    fn eighty_columns_are_enough() {
        let lines = drawn(&mut model(), 80, 24);
        assert!(lines[0].starts_with(" we\\u001b[31mb (7) · every 1 s · 4 values · "), "{}", lines[0]);
        let expected = [
            "COUNTER                              VALUE        CHANGE   TREND",
            "- System.Runtime",
            "dotnet.assembly.count 17 assembly ▁▁▁",
        ];
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        for (line, expected) in lines[1..].iter().zip(expected) {
            assert_eq!(squeezed(line), squeezed(expected));
        }
        let rows: Vec<_> = lines[4..8].iter().map(|line| squeezed(line)).collect();
        assert!(rows[0].starts_with("dotnet.gc.heap.total_allocated "), "{}", rows[0]);
        assert!(rows[0].ends_with("9.00 MB/s +5.00 MB/s ▁▄█"), "{}", rows[0]);
        assert_eq!(rows[2..], ["- Shop", "order.size city=Oslo 9 kg +5 kg ▁▄█"]);
        assert_eq!(lines[23], " p pause  s sort  / filter  enter detail  q quit  ? help   by importance");
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
    }

    /// The rate of a busy thread pool is wider than the column's least width: `690 work_item/s` was shown of
    /// it.
    #[test]
    fn no_width_takes_the_first_digits_of_a_number() {
        let mut model = Model::new(Duration::from_secs(1));
        let process = process(0, 7);
        model.begin(&process, Clock::of(None));
        let of =
            series("System.Runtime", "dotnet.thread_pool.work_item.count", "{work_item}", "", Kind::Counter);
        for increment in [1.0, 49_380.0] {
            let counter = MeterMeasurement::Counter { increment: Some(increment), total: None };
            add(&mut model, &process, &of, 0, &Measurement::Meter(counter));
        }
        for width in (40..=200).step_by(10) {
            let line = drawn(&mut model, width, 24)[3].clone();
            assert!(line.contains(" 24,690 work_item/s"), "{width}: {line}");
            let changes = line.contains("+24,689.5 work_item/s") || !line.contains('+');
            assert!(changes, "{width}: {line}");
        }
        // Values that do not fit lose their end, not their beginning.
        let narrow = drawn(&mut model, 20, 24)[3].clone();
        assert!(narrow.ends_with(" 24,690 work_it…"), "{narrow}");
        // The same layout with processes side by side.
        let other = WatchedProcess { number: 1, name: Some("web".into()), pid: Some(8) };
        model.begin(&other, Clock::of(None));
        assert!(drawn(&mut model, 80, 24)[3].contains(" 24,690 work_item/s"));
    }

    #[test]
    fn processor_time_memory_and_the_thread_pool_come_first() {
        let mut model = Model::new(Duration::from_secs(1));
        let process = process(0, 7);
        model.begin(&process, Clock::of(None));
        let gauge = Measurement::Meter(MeterMeasurement::Gauge { value: Some(1.0) });
        for (id, (provider, name)) in (0..).zip([
            ("Microsoft.AspNetCore.Hosting", "cpu-usage"),
            ("System.Runtime", "dotnet.thread_pool.queue.length"),
            ("System.Runtime", "dotnet.assembly.count"),
            ("System.Runtime", "dotnet.process.memory.working_set"),
            ("System.Runtime", "dotnet.process.cpu.time"),
        ]) {
            add(&mut model, &process, &series(provider, name, "", "", Kind::Gauge), id, &gauge);
        }
        let name = |line: &String| line.split_whitespace().next().map(str::to_owned);
        let names: Vec<_> = drawn(&mut model, 120, 24)[3..7].iter().filter_map(name).collect();
        assert_eq!(
            names,
            [
                "dotnet.process.cpu.time",
                "dotnet.process.memory.working_set",
                "dotnet.thread_pool.queue.length",
                "dotnet.assembly.count"
            ]
        );
    }

    #[test]
    fn keys_fold_filter_sort_and_quit() {
        let mut model = model();
        press(&mut model, &[KeyCode::Char('s'), KeyCode::Down, KeyCode::Char(' ')]);
        assert_eq!(drawn(&mut model, 80, 24)[2], "+ Shop (1)");
        press(&mut model, &[KeyCode::Char('/'), KeyCode::Char('G'), KeyCode::Char('c'), KeyCode::Enter]);
        let lines = drawn(&mut model, 200, 50);
        assert!(
            lines[2].starts_with("- System.Runtime") && lines[3].contains("total_allocated"),
            "{lines:?}"
        );
        assert!(lines[5].is_empty() && lines[49].ends_with("by name · only 'Gc'"), "{lines:?}");
        press(&mut model, &[KeyCode::Esc, KeyCode::Char('s')]);
        let lines = drawn(&mut model, 200, 50);
        // By value: the total is the largest.
        assert!(lines[4].contains("total_allocated total"), "{lines:?}");
        press(&mut model, &[KeyCode::Char('?')]);
        assert!(drawn(&mut model, 80, 24).iter().any(|line| line.contains("fold the provider")));
        press(&mut model, &[KeyCode::Char('?')]);
        let narrow = drawn(&mut model, 60, 24);
        assert!(narrow[4].starts_with("  …allocated total "), "{narrow:?}");
        // Parts that do not fit are left out, whatever the size.
        for (width, height) in [(1, 1), (5, 3), (20, 5)] {
            drawn(&mut model, width, height);
        }
        assert!(!model.list.is_done());
        press(&mut model, &[KeyCode::Char('q')]);
        assert!(model.list.is_done());
    }
}
