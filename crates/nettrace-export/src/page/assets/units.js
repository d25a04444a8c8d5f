// Numbers as people read them.

// Made once: toLocaleString makes one for each number.
const [FINE, MIDDLE, COARSE] = [2, 1, 0].map(maximumFractionDigits => new Intl.NumberFormat("en-US", { maximumFractionDigits }));
const number = n => (Math.abs(n) < 10 ? FINE : Math.abs(n) < 100 ? MIDDLE : COARSE).format(n);
const percent = (part, all) => (all ? 100 * part / all : 0).toFixed(2) + "%";
function duration(ns) {
  return ns >= 1e9 ? number(ns / 1e9) + " s" : ns >= 1e6 ? number(ns / 1e6) + " ms" : ns >= 1e3 ? number(ns / 1e3) + " µs" : ns ? number(ns) + " ns" : "0";
}
function bytes(n) {
  return n >= 1e9 ? number(n / 1e9) + " GB" : n >= 1e6 ? number(n / 1e6) + " MB" : n >= 1e3 ? number(n / 1e3) + " KB" : number(n) + " B";
}
