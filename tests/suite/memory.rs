//! Memory is flat: what a run holds after 200 iterations it holds after 2,000.

#![cfg(target_os = "linux")]

use std::process::Command;

use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::noise::Noise;
use jem_core::train::{Control, Observer, Record, View};

use crate::support::{small_model, small_trainer};

const FOLDER: &str = "JEM_CORE_TEST_MEMORY";

/// Resident pages of this process.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse().unwrap()
}

struct Watch;

impl<M, S> Observer<M, S> for Watch {
    fn on_record(&mut self, record: &Record, _: &View<'_, M, S>) -> jem_core::Result<Control> {
        if let Record::Step(step) = record
            && (step.iteration == 200 || step.iteration == 1_999)
        {
            println!("resident at {}: {}", step.iteration, resident());
        }
        Ok(Control::Continue)
    }
}

/// Not a test of its own: a process that does nothing else.
#[test]
#[ignore = "run by memory_is_flat"]
fn child() {
    if std::env::var_os(FOLDER).is_some() {
        let device = Device::default();
        let mut noise = Noise::host(1);
        let model = small_model(&mut noise, &device);
        let mut trainer = small_trainer(2_000, &device).with_observer(Watch);
        let state = trainer.start(model, AdamConfig::new().init(), noise, &device).unwrap();
        trainer.train(state).unwrap();
    }
}

#[test]
fn memory_is_flat() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory::child", "--ignored", "--nocapture"])
        .env(FOLDER, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let pages: Vec<f64> = text
        .lines()
        .filter_map(|line| line.split("resident at ").nth(1)?.split(": ").nth(1)?.trim().parse().ok())
        .collect();
    assert_eq!(pages.len(), 2, "{text}");
    let growth = pages[1] / pages[0] - 1.0;
    println!("resident pages after 200 and 2,000 iterations: {pages:?}, growth {:.2} %", 100.0 * growth);
    assert!(growth < 0.02, "{} pages became {}", pages[0], pages[1]);
}
