//! The drawing of the screen.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Clear, Paragraph, Row as TableRow, Table, TableState};

use super::model::{Model, Row};

/// Keys, and what they do.
const HELP: &str = "\
 up, down     choose a row          page up, page down, home, end too
 enter        fold the provider     f  all of them
 /            show only rows with a text; esc shows all
 s            order by name, value or change
 p            pause, and go on
 q, ctrl-c    quit
 ?            close this";

/// The widths of columns.
const VALUE: u16 = 15;
const CHANGE: u16 = 14;
/// The width at which a trend is shown.
const WIDTH_WITH_TREND: u16 = 60;

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model) {
    let [title, table, keys] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    let mut heading = model.title();
    if model.is_paused {
        heading.push_str(" · paused");
    }
    frame.render_widget(Paragraph::new(heading).style(Style::new().add_modifier(Modifier::REVERSED)), title);
    draw_table(frame, table, model);
    frame.render_widget(Paragraph::new(keys_line(model)), keys);
    if model.shows_help {
        draw_help(frame);
    }
}

fn keys_line(model: &Model) -> String {
    if model.is_typing {
        return format!(" show only: {}_", model.filter);
    }
    if !model.message.is_empty() {
        return format!(" {}", model.message);
    }
    let filter = if model.filter.is_empty() { String::new() } else { format!(" · only '{}'", model.filter) };
    format!(" p pause  s sort  / filter  enter fold  q quit  ? help   by {}{filter}", model.order.name())
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    // One line is the head.
    model.page = usize::from(area.height.saturating_sub(1)).max(1);
    let has_trend = area.width >= WIDTH_WITH_TREND;
    let trend = if has_trend { (area.width / 6).clamp(8, 40) } else { 0 };
    // A space between columns, and two before a name.
    let name = usize::from(area.width.saturating_sub(VALUE + CHANGE + trend + 3 + 2));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let rows = model.rows().into_iter().map(|row| match row {
        Row::Group { title, is_folded, count, .. } => {
            let mark = if is_folded { '+' } else { '-' };
            let title =
                format!("{mark} {title}{}", if is_folded { format!(" ({count})") } else { String::new() });
            TableRow::new([Line::from(title)]).style(bold)
        }
        Row::Number(number) => TableRow::new([
            Line::from(format!("  {}", number.label(name))),
            Line::from(number.value()).right_aligned(),
            Line::from(number.change_text()).right_aligned(),
            Line::from(sparkline(&number.history, usize::from(trend))),
        ]),
    });
    let mut widths = vec![Constraint::Min(20), Constraint::Length(VALUE), Constraint::Length(CHANGE)];
    let mut head = vec![
        Line::from("COUNTER"),
        Line::from("VALUE").right_aligned(),
        Line::from("CHANGE").right_aligned(),
    ];
    if has_trend {
        widths.push(Constraint::Length(trend));
        head.push(Line::from("TREND"));
    }
    let table = Table::new(rows, widths)
        .header(TableRow::new(head).style(bold))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected(model.selected);
    frame.render_stateful_widget(table, area, &mut state);
}

/// The last values as bars of eight heights, from the least to the largest of them.
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
    let area = frame.area();
    let (width, height) = (72.min(area.width), 9.min(area.height));
    let place = Rect {
        x: area.width.saturating_sub(width) / 2,
        y: area.height.saturating_sub(height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    let text = Text::from(format!("\n{HELP}"));
    frame.render_widget(Paragraph::new(text).style(Style::new().add_modifier(Modifier::REVERSED)), place);
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
    use crate::command::counters::live::Process;
    use crate::inspect::counters::Clock;

    fn series(provider: &str, name: &str, unit: &str, tags: &str, kind: Kind) -> Series {
        Series {
            process_id: Some(7),
            provider: provider.into(),
            meter_version: String::new(),
            name: name.into(),
            display_name: String::new(),
            unit: unit.into(),
            description: String::new(),
            tags: tags.into(),
            instrument_tags: String::new(),
            meter_tags: String::new(),
            instrument_id: None,
            instrument_type: String::new(),
            kind,
            display_rate_time_scale: String::new(),
        }
    }

    /// A model of three intervals.
    fn model() -> Model {
        let mut model = Model::new(Duration::from_secs(1));
        let process = Process { number: 0, name: Some("we\u{1b}[31mb".into()), pid: Some(7) };
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
                    &Sample {
                        time: RelativeTime::after_start(Duration::from_secs(1)),
                        id: SeriesId(id),
                        series,
                        interval: Some(Duration::from_secs(1)),
                        nominal_interval: Some(Duration::from_secs(1)),
                        measurement: &measurement,
                    },
                );
            }
        }
        model
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
            "- Shop",
            "  order.size city=Oslo                9 kg         +5 kg   ▁▄█",
        ];
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        for (line, expected) in lines[1..].iter().zip(expected) {
            assert_eq!(squeezed(line), squeezed(expected));
        }
        let rows: Vec<_> = lines[4..8].iter().map(|line| squeezed(line)).collect();
        assert_eq!(rows[0], "- System.Runtime");
        assert_eq!(rows[1], "dotnet.assembly.count 17 assembly ▁▁▁");
        assert!(rows[2].starts_with("dotnet.gc.heap.total_allocated "), "{}", rows[2]);
        assert!(rows[2].ends_with("9.00 MB/s +5.00 MB/s ▁▄█"), "{}", rows[2]);
        assert_eq!(lines[23], " p pause  s sort  / filter  enter fold  q quit  ? help   by name");
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
    }

    #[test]
    fn keys_fold_filter_sort_and_quit() {
        let mut model = model();
        press(&mut model, &[KeyCode::Down, KeyCode::Enter]);
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
        // What has no room is left out, whatever the size.
        for (width, height) in [(1, 1), (5, 3), (20, 5)] {
            drawn(&mut model, width, height);
        }
        assert!(!model.is_done());
        press(&mut model, &[KeyCode::Char('q')]);
        assert!(model.is_done());
    }
}
