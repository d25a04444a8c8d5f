//! Pages of heaps.

use gcdump::page::HeapPage;

fn page(title: &str, budget: usize) -> String {
    let graph = gcdump::file::read(&testdata::bytes("gcdump/files/net10.gcdump.xz")).unwrap();
    let mut page = Vec::new();
    HeapPage::new(&graph, title).with_budget(budget).write(&mut page).unwrap();
    String::from_utf8(page).unwrap()
}

#[test]
fn small_items_are_left_out_until_a_page_fits() {
    let whole = page("heap", 5_000_000).len();
    for budget in [whole - 10_000, whole - 50_000] {
        let cut = page("heap", budget).len();
        assert!(cut <= budget, "{cut} of {budget}");
    }
}

#[test]
fn a_title_is_no_markup() {
    let page = page("</script><script>alert(1)", 5_000_000);
    assert!(!page.contains("<script>alert(1)") && page.contains("\\u003c/script\\u003e"));
}
