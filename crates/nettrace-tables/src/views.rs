//! SQL as a start for queries: the tables of a data set as views, in the dialect of an engine.
//!
//! ```
//! use nettrace_tables::views::{Dialect, views};
//!
//! let sql = views(Dialect::DuckDb, "data", &[]);
//! assert!(sql.contains("read_parquet('data/events/*/*/*.parquet'"));
//! ```

use std::fmt;

use crate::promoted::PromotedColumn;
use crate::schema::TABLES;

/// The engine that reads the SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// DuckDB.
    DuckDb,
    /// Apache DataFusion.
    DataFusion,
    /// Apache Spark.
    Spark,
    /// ClickHouse.
    ClickHouse,
}

/// A view, as a template for all dialects: `{any}`, `{explode}`, `{position}`.
struct View {
    name: &'static str,
    /// The meaning of its rows.
    about: &'static str,
    query: &'static str,
}

const VIEWS: &[View] = &[
    View {
        name: "frames",
        about: "One row for each frame, with its name as dipc shows it.",
        query: "\
SELECT r.frame_id AS frame_id, {any}(r.kind) AS kind, {any}(r.module) AS module, {any}(r.type) AS type, {any}(r.method) AS method,
  {any}(r.signature) AS signature, {any}(r.method_key) AS method_key,
  {any}(CASE WHEN r.module = '' THEN '?' ELSE r.module END || '!' || CASE WHEN r.kind = 'nameless' THEN '?' ELSE
    CASE WHEN r.type = '' THEN '' ELSE r.type || '.' END || r.method ||
    CASE WHEN {position} > 0 THEN substr(r.signature, {position}) ELSE '' END END) AS name
FROM raw_frames r GROUP BY r.frame_id",
    },
    View {
        name: "stacks",
        about: "One row for each stack, frames leaf first.",
        query: "\
SELECT r.stack_id AS stack_id, {any}(r.depth) AS depth, {any}(r.leaf) AS leaf, {any}(r.frames) AS frames
FROM raw_stacks r GROUP BY r.stack_id",
    },
    View {
        name: "stack_frames",
        about: "A row for each stack and each method on it, however often it is there.",
        query: "\
SELECT DISTINCT s.stack_id AS stack_id, f.name AS name, f.method_key AS method_key
FROM (SELECT stack_id, {explode} AS frame_id FROM stacks) s JOIN frames f ON f.frame_id = s.frame_id",
    },
    View {
        name: "event_counts",
        about: "Events by kind.",
        query: "\
SELECT service, version, provider, event, count(*) AS events FROM events GROUP BY service, version, provider, event",
    },
    View {
        name: "top_methods",
        about: "The method at the leaf of samples: samples, and the time until each thread's next sample, or on a processor.",
        query: "\
SELECT s.service AS service, s.version AS version, s.kind AS kind, f.name AS method, count(*) AS samples, CAST(coalesce(sum(s.ns), 0) AS BIGINT) AS self_ns
FROM samples s JOIN stacks k ON k.stack_id = s.stack_id JOIN frames f ON f.frame_id = k.leaf
GROUP BY s.service, s.version, s.kind, f.name",
    },
    View {
        name: "inclusive",
        about: "The same of methods anywhere on the stack.",
        query: "\
SELECT s.service AS service, s.version AS version, s.kind AS kind, f.name AS method, CAST(sum(s.samples) AS BIGINT) AS samples, CAST(sum(s.ns) AS BIGINT) AS ns
FROM (SELECT service, version, kind, stack_id, count(*) AS samples, coalesce(sum(ns), 0) AS ns
    FROM samples WHERE stack_id IS NOT NULL GROUP BY service, version, kind, stack_id) s
JOIN (SELECT DISTINCT stack_id, name FROM stack_frames) f ON f.stack_id = s.stack_id
GROUP BY s.service, s.version, s.kind, f.name",
    },
    View {
        name: "allocations",
        about: "Allocated bytes by type, for each event that tells of them: these count the same bytes.",
        query: "\
SELECT service, version, event, alloc_type AS type, count(*) AS events, CAST(sum(alloc_bytes) AS BIGINT) AS bytes
FROM events WHERE alloc_type IS NOT NULL GROUP BY service, version, event, alloc_type",
    },
    View {
        name: "exceptions",
        about: "Thrown exceptions by type.",
        query: "\
SELECT service, version, exception_type AS type, count(*) AS count, min(exception_message) AS first_message
FROM events WHERE exception_type IS NOT NULL GROUP BY service, version, exception_type",
    },
    View {
        name: "gc_steps",
        about: "Suspensions of threads, and what follows each on its thread.",
        query: "\
SELECT service, version, pod, recording, pid, tid, event, suspend_reason, suspend_gc_number, time_ns,
  lead(event, 1) OVER (PARTITION BY recording, pid, tid ORDER BY time_ns, event) AS next_event,
  lead(time_ns, 1) OVER (PARTITION BY recording, pid, tid ORDER BY time_ns, event) AS next_ns,
  lead(resumed_ns, 1) OVER (PARTITION BY recording, pid, tid ORDER BY time_ns, event) AS next_resumed_ns,
  lead(event, 2) OVER (PARTITION BY recording, pid, tid ORDER BY time_ns, event) AS last_event,
  lead(time_ns, 2) OVER (PARTITION BY recording, pid, tid ORDER BY time_ns, event) AS last_ns
FROM (SELECT service, version, pod, recording, pid, tid, event, suspend_reason, suspend_gc_number, time_ns,
    max(CASE WHEN event = 'GC/RestartEEStop' THEN time_ns END) OVER (PARTITION BY recording, pid ORDER BY time_ns, event
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS resumed_ns
  FROM events WHERE provider = 'Microsoft-Windows-DotNETRuntime'
    AND event IN ('GC/SuspendEEStart', 'GC/SuspendEEStop', 'GC/RestartEEStop')) steps",
    },
    View {
        name: "gc_pauses",
        about: "Times for which a process stood still for its collector, from the request on, or from the end of the pause before.",
        query: "\
SELECT service, version, pod, recording, pid, suspend_gc_number AS gc_number, suspend_reason AS reason, start_ns, end_ns, end_ns - start_ns AS pause_ns
FROM (SELECT service, version, pod, recording, pid, suspend_gc_number, suspend_reason,
    CASE WHEN next_event = 'GC/SuspendEEStop' AND next_resumed_ns > time_ns THEN next_resumed_ns ELSE time_ns END AS start_ns,
    CASE WHEN next_event = 'GC/RestartEEStop' THEN next_ns
      WHEN next_event = 'GC/SuspendEEStop' AND last_event = 'GC/RestartEEStop' THEN last_ns END AS end_ns
  FROM gc_steps WHERE event = 'GC/SuspendEEStart' AND suspend_reason IN ('SuspendForGC', 'SuspendForGCPrep')) pauses
WHERE end_ns IS NOT NULL",
    },
    View {
        name: "requests",
        about: "Requests and calls with their start and stop, of ASP.NET Core, Kestrel, HttpClient, sockets, TLS, SqlClient and gRPC.",
        query: "\
SELECT service, version, pod, recording, pid, provider, request_role AS role, request_name AS name, time_ns AS start_ns,
  stop_ns - time_ns AS duration_ns, status, coalesce(is_error, false) AS is_error
FROM (SELECT service, version, pod, recording, pid, provider, request_role, request_name, time_ns, opcode,
    lead(opcode) OVER (PARTITION BY recording, pid, provider, request_role, coalesce(activity, request_key) ORDER BY time_ns, opcode) AS next_opcode,
    lead(time_ns) OVER (PARTITION BY recording, pid, provider, request_role, coalesce(activity, request_key) ORDER BY time_ns, opcode) AS stop_ns,
    lead(request_status) OVER (PARTITION BY recording, pid, provider, request_role, coalesce(activity, request_key) ORDER BY time_ns, opcode) AS status,
    lead(request_error) OVER (PARTITION BY recording, pid, provider, request_role, coalesce(activity, request_key) ORDER BY time_ns, opcode) AS is_error
  FROM events WHERE request_role IS NOT NULL AND coalesce(activity, request_key) IS NOT NULL) steps
WHERE opcode = 1 AND next_opcode = 2",
    },
    View {
        name: "method_shares",
        about: "The share of each method in the samples of a version: of those in managed code or on a processor, by the method at the leaf.",
        query: "\
SELECT service, version, method_key, samples, CAST(samples AS DOUBLE) / sum(samples) OVER (PARTITION BY service, version) AS share
FROM (SELECT s.service AS service, s.version AS version, f.method_key AS method_key, count(*) AS samples
  FROM samples s JOIN stacks k ON k.stack_id = s.stack_id JOIN frames f ON f.frame_id = k.leaf
  WHERE s.kind IN ('managed', 'processor') GROUP BY s.service, s.version, f.method_key) counts",
    },
    View {
        name: "compare",
        about: "Two versions of a service: WHERE version_a = '1.4' AND version_b = '1.5' ORDER BY abs(share_b - share_a) DESC.",
        query: "\
SELECT p.service AS service, p.version_a AS version_a, p.version_b AS version_b, p.method_key AS method_key, coalesce(a.share, 0) AS share_a, coalesce(b.share, 0) AS share_b,
  coalesce(a.samples, 0) AS samples_a, coalesce(b.samples, 0) AS samples_b
FROM (SELECT DISTINCT x.service AS service, x.version AS version_a, y.version AS version_b, m.method_key AS method_key
  FROM (SELECT DISTINCT service, version FROM method_shares) x
  JOIN (SELECT DISTINCT service, version FROM method_shares) y ON y.service = x.service
  JOIN method_shares m ON m.service = x.service
  WHERE x.version <> y.version AND (m.version = x.version OR m.version = y.version)) p
LEFT JOIN method_shares a ON a.service = p.service AND a.version = p.version_a AND a.method_key = p.method_key
LEFT JOIN method_shares b ON b.service = p.service AND b.version = p.version_b AND b.method_key = p.method_key",
    },
    View {
        name: "recording_shares",
        about: "The share of each method in the samples of a recording, as in method_shares.",
        query: "\
SELECT service, version, recording, method_key, samples, CAST(samples AS DOUBLE) / sum(samples) OVER (PARTITION BY service, version, recording) AS share
FROM (SELECT s.service AS service, s.version AS version, s.recording AS recording, f.method_key AS method_key, count(*) AS samples
  FROM samples s JOIN stacks k ON k.stack_id = s.stack_id JOIN frames f ON f.frame_id = k.leaf
  WHERE s.kind IN ('managed', 'processor') GROUP BY s.service, s.version, s.recording, f.method_key) counts",
    },
    View {
        name: "version_shares",
        about: "The mean of these over the recordings of a version, a recording without the method being 0, and the square of its standard error; NULL of one recording.",
        query: "\
SELECT m.service AS service, m.version AS version, m.method_key AS method_key, n.recordings AS recordings, CAST(m.samples AS BIGINT) AS samples, m.total / n.recordings AS share,
  CASE WHEN n.recordings < 2 THEN NULL
    WHEN m.squares * n.recordings > m.total * m.total THEN (m.squares - m.total * m.total / n.recordings) / (n.recordings - 1) / n.recordings ELSE 0.0 END AS variance
FROM (SELECT service, version, method_key, sum(samples) AS samples, sum(share) AS total, sum(share * share) AS squares FROM recording_shares GROUP BY service, version, method_key) m
JOIN (SELECT service, version, CAST(count(DISTINCT recording) AS DOUBLE) AS recordings FROM recording_shares GROUP BY service, version) n
  ON n.service = m.service AND n.version = m.version",
    },
    View {
        name: "differences",
        about: "As compare, with the noise between recordings: t is the difference in its standard errors (Welch), NULL where a version has one recording. WHERE version_a = '1.4' AND version_b = '1.5' AND abs(t) > 4.",
        query: "\
SELECT d.service AS service, d.version_a AS version_a, d.version_b AS version_b, d.method_key AS method_key, d.share_a AS share_a, d.share_b AS share_b,
  d.recordings_a AS recordings_a, d.recordings_b AS recordings_b, d.samples_a AS samples_a, d.samples_b AS samples_b,
  CASE WHEN d.variance > 0 THEN (d.share_b - d.share_a) / sqrt(d.variance) END AS t
FROM (SELECT p.service AS service, p.version_a AS version_a, p.version_b AS version_b, p.method_key AS method_key,
    coalesce(a.share, 0) AS share_a, coalesce(b.share, 0) AS share_b, CAST(n.recordings AS BIGINT) AS recordings_a, CAST(o.recordings AS BIGINT) AS recordings_b,
    coalesce(a.samples, 0) AS samples_a, coalesce(b.samples, 0) AS samples_b,
    CASE WHEN n.recordings > 1 AND o.recordings > 1 THEN coalesce(a.variance, 0) + coalesce(b.variance, 0) END AS variance
  FROM compare p
  JOIN (SELECT service, version, max(recordings) AS recordings FROM version_shares GROUP BY service, version) n ON n.service = p.service AND n.version = p.version_a
  JOIN (SELECT service, version, max(recordings) AS recordings FROM version_shares GROUP BY service, version) o ON o.service = p.service AND o.version = p.version_b
  LEFT JOIN version_shares a ON a.service = p.service AND a.version = p.version_a AND a.method_key = p.method_key
  LEFT JOIN version_shares b ON b.service = p.service AND b.version = p.version_b AND b.method_key = p.method_key) d",
    },
];

/// Returns statements that declare the tables of a data set and the views over them in an engine. The
/// promoted columns are among the columns of `events`, and are listed in comments.
///
/// ```
/// use nettrace_tables::views::{Dialect, views};
///
/// let promoted = ["Shop/Order.Total:double".parse()?];
/// let sql = views(Dialect::ClickHouse, "/data", &promoted);
/// assert!(sql.contains("-- events.p_shop_order_total: Shop/Order.Total:double"));
/// # Ok::<(), String>(())
/// ```
pub fn views(dialect: Dialect, folder: &str, promoted: &[PromotedColumn]) -> String {
    let mut sql = String::new();
    for column in promoted {
        // Names cannot contain line ends, which is checked when they are read; other unusual characters are
        // shown as escapes.
        let text = column.to_string();
        push(&mut sql, format_args!("-- events.{}: {}\n", column.name(), text.escape_debug()));
    }
    if dialect == Dialect::Spark {
        sql.push_str("-- A service that is called 7 is a text, too.\nSET spark.sql.sources.partitionColumnTypeInference.enabled=false;\n\n");
    }
    for table in TABLES {
        push(&mut sql, format_args!("{}\n", dialect.table(table.name, folder)));
    }
    for view in VIEWS {
        push(
            &mut sql,
            format_args!(
                "\n-- {}\n{} {} AS\n{};\n",
                view.about,
                dialect.create(),
                view.name,
                dialect.query(view.query)
            ),
        );
    }
    sql
}

fn push(sql: &mut String, text: fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _ = fmt::Write::write_fmt(sql, text);
}

impl Dialect {
    /// Returns the statement that declares a table.
    fn table(self, table: &str, folder: &str) -> String {
        let name = match table {
            "stacks" | "frames" => format!("raw_{table}"),
            _ => table.to_owned(),
        };
        let create = self.create();
        let folder = self.text(folder.trim_end_matches('/'));
        match self {
            Self::DuckDb => format!(
                "{create} {name} AS SELECT * FROM read_parquet('{folder}/{table}/*/*/*.parquet', union_by_name = true, hive_partitioning = true, hive_types = {{'date': VARCHAR, 'service': VARCHAR}});"
            ),
            Self::DataFusion => format!(
                "CREATE EXTERNAL TABLE {name} STORED AS PARQUET PARTITIONED BY (date, service) LOCATION '{folder}/{table}/';"
            ),
            Self::Spark => {
                format!(
                    "{create} {name} USING parquet OPTIONS (path '{folder}/{table}', mergeSchema 'true');"
                )
            }
            // The engine takes the name of the service as it is in the folder, and as a number if it looks
            // like one.
            Self::ClickHouse => format!(
                "{create} {name} AS SELECT * REPLACE (decodeURLComponent(toString(service)) AS service, toString(date) AS date) FROM file('{folder}/{table}/*/*/*.parquet', Parquet) SETTINGS use_hive_partitioning = 1, schema_inference_mode = 'union';"
            ),
        }
    }

    const fn create(self) -> &'static str {
        match self {
            Self::Spark => "CREATE OR REPLACE TEMPORARY VIEW",
            _ => "CREATE OR REPLACE VIEW",
        }
    }

    fn query(self, query: &str) -> String {
        let (any, explode, position) = match self {
            Self::DuckDb => ("any_value", "unnest(frames)", "instr(r.signature, '(')"),
            Self::DataFusion => ("first_value", "unnest(frames)", "strpos(r.signature, '(')"),
            Self::Spark => ("any_value", "explode(frames)", "instr(r.signature, '(')"),
            Self::ClickHouse => ("any", "arrayJoin(frames)", "position(r.signature, '(')"),
        };
        query.replace("{any}", any).replace("{explode}", explode).replace("{position}", position)
    }

    /// Returns a string escaped for use between quotes.
    fn text(self, text: &str) -> String {
        match self {
            Self::DuckDb | Self::DataFusion => text.replace('\'', "''"),
            Self::Spark | Self::ClickHouse => text.replace('\\', "\\\\").replace('\'', "\\'"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_of_the_views_are_replaced() {
        for dialect in [Dialect::DuckDb, Dialect::DataFusion, Dialect::Spark, Dialect::ClickHouse] {
            let sql = views(dialect, "it's/", &["Shop/a\u{2028}b.c".parse().unwrap()]);
            assert!(sql.starts_with("-- events.p_shop_a_b_c: Shop/a\\u{2028}b.c:text\n"), "{sql}");
            assert!(!sql.contains("{any}") && !sql.contains("{explode}") && !sql.contains("{position}"));
            for view in VIEWS {
                assert!(sql.contains(&format!("VIEW {} AS", view.name)), "{}", view.name);
            }
            assert!(!sql.contains("it's/"), "{sql}");
        }
    }
}
