// Names, numbers and colours as text.

const KINDS = ["mine", "framework", "runtime", "native", "other", "kernel"];
const OTHER = 4;

// A counter's value with its unit: seconds per second are a share of time, and what is counted is in braces.
function quantity(value, unit) {
  const rate = unit.endsWith("/s") ? "/s" : "", of = rate ? unit.slice(0, -2) : unit, thing = of.replace(/^\{|\}$/g, "");
  const sign = value < 0 ? "-" : "", size = Math.abs(value), plain = size < 1e15 ? number(value) : value.toExponential(2);
  if (of === "s" && rate) return number(100 * value) + " %";
  const factor = { B: 1, By: 1, MB: 1e6 }[of], time = { s: 1e9, ms: 1e6 }[of];
  if (factor && size < 1e18) return sign + bytes(size * factor) + rate;
  if (time && size < 1e18) return sign + duration(size * time) + rate;
  return plain + (thing || rate ? " " : "") + thing + rate;
}
// The pen of a canvas for so many pixels of the page.
function penFor(canvas, width, height) {
  const ratio = devicePixelRatio || 1, pen = canvas.getContext("2d");
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  pen.scale(ratio, ratio);
  return pen;
}
// A weight of the recording's metric.
function amount(recording, weight) {
  return exact(recording, weight * recording.scale);
}
// The same in nanoseconds, bytes or things.
function exact(recording, sum) {
  return recording.isTime ? duration(sum) : recording.unit === "bytes" ? bytes(sum) : number(sum);
}

// A method without its module; of code that has no name the module is all there is.
function short(name) {
  const mark = name.indexOf("!");
  return mark > 0 && name.slice(mark + 1) !== "?" ? name.slice(mark + 1) : name;
}

// A time since the beginning, to the microsecond.
const instant = ns => (ns / 1e9).toFixed(6).replace(/0{1,3}$/, "") + " s";

// As much of a name as fits: the namespace goes first, then the parameters, of which "(…)" stays, then what the type begins with, so that the
// method stays.
function fit(name, width, measure) {
  const fits = label => label.length * 3 < width && measure(label) <= width;
  const whole = short(name);
  if (fits(whole)) return whole;
  // What has no module is a type, a thread or a word of ours.
  const isCode = name.includes("!"), managed = isCode && !whole.includes("::") && !whole.endsWith("!?") && whole.match(/^([^(]*)(\(.*)?$/);
  let last = isCode ? whole : whole.replace(/^[\w.]*\.(?=\w)/, "");
  if (fits(last)) return last;
  if (managed) {
    // A constructor's own name begins with a dot.
    const [, type, method] = managed[1].replace(/\[.*\]/, "[…]").match(/([^.]*)\.(\.?[^.]+)$/) ?? [null, "", managed[1]];
    const dot = type ? "." : "", parentheses = !managed[2] ? "" : managed[2] === "()" ? "()" : "(…)";
    for (const label of [type + dot + method + (managed[2] ?? ""), type + dot + method + parentheses]) if (fits(label)) return label;
    for (let from = 1; from < type.length - 2; from++) {
      const label = "…" + type.slice(from) + dot + method + parentheses;
      if (fits(label)) return label;
    }
    last = method + parentheses;
    if (fits(last)) return last;
  }
  let most = Math.min(last.length, Math.floor(width / 3));
  while (most > 1 && measure(last.slice(0, most) + "…") > width) most--;
  return last.slice(0, most) + "…";
}

// Colours of the style sheet as canvas takes them, for the theme at hand.
class Palette {
  constructor() {
    this.probe = document.createElement("span");
    this.probe.hidden = true;
    document.body.append(this.probe);
    this.forget();
  }

  forget() { this.known = new Map(); }

  get(name) {
    if (!this.known.has(name)) {
      this.probe.style.color = `var(--${name})`;
      this.known.set(name, getComputedStyle(this.probe).color);
    }
    return this.known.get(name);
  }

  // One hue for each kind; neighbours of one kind differ a little.
  frame(name, kind) {
    const key = kind + name;
    if (!this.known.has(key)) {
      let hash = 2166136261;
      for (const c of name) hash = Math.imul(hash ^ c.codePointAt(0), 16777619);
      const [r, g, b] = this.get(kind).match(/[\d.]+/g).map(Number), factor = 0.94 + (hash >>> 8) % 13 / 100;
      this.known.set(key, `rgb(${[r, g, b].map(part => Math.min(255, Math.round(part * factor))).join(" ")})`);
    }
    return this.known.get(key);
  }
}
