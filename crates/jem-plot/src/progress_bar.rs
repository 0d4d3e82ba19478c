//! A progress bar: loss terms, energies, gradient norm, samples a second and time left.

use std::time::Instant;

use indicatif::{ProgressBar as Bar, ProgressStyle};

use jem_core::Result;
use jem_core::objectives::{Loss, terms};
use jem_core::train::{Control, GRADIENT_NORM, Observer, Record, Values, View};

/// Draws a run's progress on the terminal; silent where there is none, but for the ends of epochs.
#[derive(Debug)]
pub struct ProgressBar {
    batch: usize,
    bar: Option<Bar>,
    epoch: String,
    started: Option<(Instant, u64)>,
}

impl ProgressBar {
    /// A bar for a run whose iterations see `batch` training samples each.
    pub fn new(batch: usize) -> Self {
        Self { batch, bar: None, epoch: String::new(), started: None }
    }

    fn bar(&mut self, planned: u64, done: u64) -> &Bar {
        self.bar.get_or_insert_with(|| {
            let template = "{bar:24.cyan/blue} {pos}/{len} {elapsed} (left {eta}) {msg}";
            let bar = Bar::new(planned).with_position(done);
            bar.reset_eta();
            match ProgressStyle::with_template(template) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        })
    }
}

/// The numbers of a step on one line.
fn line(values: &Values) -> String {
    let parts = [
        ("loss", Loss::TOTAL),
        ("ce", terms::CROSS_ENTROPY),
        ("E(data)", terms::ENERGY_DATA),
        ("E(samples)", terms::ENERGY_SAMPLES),
        ("|grad|", GRADIENT_NORM),
    ];
    let shown = parts.iter().filter_map(|(short, name)| Some(format!("{short} {:.3}", values.get(*name)?)));
    shown.collect::<Vec<_>>().join("  ")
}

impl<M, S> Observer<M, S> for ProgressBar {
    fn on_record(&mut self, record: &Record, view: &View<'_, M, S>) -> Result<Control> {
        let (since, first) = *self.started.get_or_insert_with(|| (Instant::now(), view.iteration));
        let done = (view.iteration - first) as f64;
        let rate = done * self.batch as f64 / since.elapsed().as_secs_f64().max(1e-9);
        let epoch = self.epoch.clone();
        let bar = self.bar(view.iterations, view.iteration);
        match record {
            Record::Step(step) => {
                bar.set_position(view.iteration);
                bar.set_message(format!("{}  {rate:.0} img/s {epoch}", line(&step.values)));
            }
            Record::Epoch(record) if record.values.is_empty() => {}
            Record::Epoch(record) => {
                let values = record.values.iter().map(|(name, value)| format!("{name} {value:.3}"));
                let text = format!("epoch {}: {}", record.epoch + 1, values.collect::<Vec<_>>().join("  "));
                print(bar, &text);
                self.epoch = format!("[{text}]");
            }
            Record::Event(event) => {
                print(bar, &format!("iteration {}: {:?}: {}", event.iteration, event.event, event.cause));
            }
        }
        if view.iteration >= view.iterations
            && let Some(bar) = &self.bar
        {
            bar.finish_and_clear();
        }
        Ok(Control::Continue)
    }
}

/// A line above the bar, or on standard error where the bar is not drawn.
fn print(bar: &Bar, text: &str) {
    if bar.is_hidden() {
        eprintln!("{text}");
    } else {
        bar.println(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_what_there_is() {
        let values: Values = [(Loss::TOTAL.to_owned(), 1.5), (terms::ENERGY_DATA.to_owned(), -2.25)].into();
        assert_eq!(line(&values), "loss 1.500  E(data) -2.250");
    }
}
