//! Stacks as the awaits have them, on pages.

use crate::open;

const METHODS: &str = "return { folds: document.getElementById('async').checked,
    names: page.weights.top().map(row => page.weights.tree.names[row.name]),
    note: [...document.querySelectorAll('#notes li')].some(note => note.textContent.includes('Fold async')) };";

fn has_plumbing(seen: &serde_json::Value) -> bool {
    let names = seen["names"].as_array().unwrap();
    names.iter().any(|name| name.as_str().unwrap().contains("AsyncMethodBuilderCore"))
}

#[test]
fn recordings_with_events_of_tasks_begin_with_the_stacks_of_awaits() {
    let Some((_folder, page, browser)) = open("traces/net9-joined.nettrace", &[]) else { return };
    let seen = browser.drive(&page, METHODS);
    assert_eq!((&seen["folds"], &seen["note"]), (&true.into(), &true.into()));
    assert!(!has_plumbing(&seen), "{seen}");
    let all = browser.drive(&page, &format!("document.getElementById('async').click(); {METHODS}"));
    assert!(all["folds"] == false && has_plumbing(&all), "{all}");
}

#[test]
fn recordings_without_them_begin_with_all_frames() {
    let Some((_folder, page, browser)) = open("diff/new.nettrace", &[]) else { return };
    let seen = browser.drive(&page, METHODS);
    assert_eq!((&seen["folds"], &seen["note"]), (&false.into(), &false.into()));
}
