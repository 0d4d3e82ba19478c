//! What comes out of a comparison: tables, a chart, numbers, and one page.

use std::path::Path;

use jem_core::{Error, Result};
use jem_plot::{Chart, Report};
use serde_json::{Value, json};

use crate::learn::{Learnt, Method};
use crate::{BATCH, Options, PAIRS};

/// Mean, lowest and highest.
fn spread(values: impl Iterator<Item = f64> + Clone) -> [f64; 3] {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    [mean, values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max)]
}

fn percent([mean, low, high]: [f64; 3]) -> String {
    format!("{:.1} ({:.1} to {:.1})", 100.0 * mean, 100.0 * low, 100.0 * high)
}

/// The results of a method over the seeds.
pub struct Row {
    pub method: Method,
    pub runs: Vec<Learnt>,
    /// The same network on all digits at once, for as many iterations.
    pub at_once: Vec<Learnt>,
}

impl Row {
    fn after(&self, pair: usize) -> [f64; 3] {
        spread(self.runs.iter().map(|run| run.over_all[pair]))
    }

    fn of_pair_at_end(&self, pair: usize) -> [f64; 3] {
        spread(self.runs.iter().map(|run| run.at_end[pair]))
    }

    fn at_once(&self) -> [f64; 3] {
        spread(self.at_once.iter().filter_map(|run| run.over_all.last().copied()))
    }

    fn to_json(&self) -> Value {
        json!({
            "method": self.method.key,
            "parameters": self.runs.first().map(|run| run.parameters),
            "over_all_after_each_pair": self.runs.iter().map(|run| &run.over_all).collect::<Vec<_>>(),
            "of_each_pair_at_the_end": self.runs.iter().map(|run| &run.at_end).collect::<Vec<_>>(),
            "all_at_once": self.at_once.iter().filter_map(|run| run.over_all.last()).collect::<Vec<_>>(),
        })
    }
}

/// Writes everything into the run directory and prints the tables.
pub fn write(rows: &[Row], options: &Options, seconds: f64) -> Result<()> {
    let pairs: Vec<String> = PAIRS.iter().map(|[a, b]| format!("{a}-{b}")).collect();
    let mut headers = vec!["method".to_owned(), "weights".to_owned()];
    headers.extend(pairs.iter().map(|pair| format!("after {pair}")));
    headers.push("all at once".to_owned());
    let table = |cells: &dyn Fn(&Row) -> Vec<String>| -> Vec<Vec<String>> {
        let name = |row: &Row| vec![row.method.name.to_owned(), row.runs[0].parameters.to_string()];
        rows.iter().map(|row| [name(row), cells(row)].concat()).collect()
    };
    let over_all = table(&|row| {
        (0..PAIRS.len()).map(|pair| percent(row.after(pair))).chain([percent(row.at_once())]).collect()
    });
    let at_end = table(&|row| (0..PAIRS.len()).map(|pair| percent(row.of_pair_at_end(pair))).collect());
    let seeds = options.seeds();
    println!(
        "Test accuracy over all ten digits after each pair, %: mean (lowest to highest) of {seeds} seeds, {} iterations a pair.",
        options.iterations()
    );
    println!("What was seen by then is 20, 40, 60, 80 and 100 % of the digits.");
    print_table(&headers, &over_all);
    println!("\nAccuracy at the end over the digits of each pair, %:");
    let of_pairs: Vec<String> = headers[..2].iter().chain(&pairs).cloned().collect();
    print_table(&of_pairs, &at_end);

    let seen = |pair: usize| 2.0 * (pair + 1) as f64;
    let curve = |row: &Row| -> Vec<(f64, f64)> {
        (0..PAIRS.len()).map(|p| (seen(p), 100.0 * row.after(p)[0])).collect()
    };
    let chart = rows.iter().fold(
        Chart::new("Accuracy over all ten digits", "digits seen so far", "%, mean of the seeds")
            .with_y_range(0.0, 100.0)
            .with_series("every digit seen is known", (0..PAIRS.len()).map(|p| (seen(p), 10.0 * seen(p)))),
        |chart, row| chart.with_series(row.method.name, curve(row)),
    );
    chart.write_svg(options.out.join("accuracy.svg"))?;
    let results = json!({
        "iterations_per_pair": options.iterations(), "seeds": seeds, "batch": BATCH, "width": options.width,
        "learning_rate": options.learning_rate, "pairs": PAIRS,
        "methods": rows.iter().map(Row::to_json).collect::<Vec<_>>(),
    });
    write_json(&options.out.join("continual.json"), &results)?;
    let path = options.out.join("report.html");
    Report::new("Continual learning on pairs of digits")
        .summary(&[
            ("Iterations a pair", options.iterations().to_string()),
            ("Seeds", seeds.to_string()),
            ("Optimiser", format!("Adam, learning rate {}, afresh for each pair", options.learning_rate)),
            ("Batch", BATCH.to_string()),
            ("Time", format!("{seconds:.0} s")),
        ])
        .section(
            "Accuracy over all ten digits, %",
            "Mean (lowest to highest) over the seeds. Nothing of earlier pairs is kept. All at once: the same network \
             and iterations, on all digits from the start, under a loss over all ten labels.",
        )
        .table(&headers, over_all)
        .svg(chart.to_svg()?, "After each pair. The straight line: all digits seen so far are answered right, and no others. Curves that agree hide each other.")
        .section("What is left at the end, %", "Accuracy over the test digits of each pair, with all ten answers open.")
        .table(&of_pairs, at_end)
        .write(&path)?;
    println!("{}", path.display());
    Ok(())
}

fn print_table(headers: &[String], rows: &[Vec<String>]) {
    let all: Vec<&[String]> = std::iter::once(headers).chain(rows.iter().map(Vec::as_slice)).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    for row in &all {
        let cell = |(column, cell): (usize, &String)| format!("{cell:<w$}  ", w = width(column));
        let line: String = row.iter().enumerate().map(cell).collect();
        println!("{}", line.trim_end());
    }
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    std::fs::write(path, format!("{value:#}\n")).map_err(|source| Error::io(path, source))
}
